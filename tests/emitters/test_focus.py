"""The emitter ``focus`` and the folder that it writes."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from chargeback.emitters.contract import MONTHLY, EmitterContext, Facts, FocusKind, Period
from chargeback.emitters.focus import FocusFolder, FocusParams, emitter_type
from chargeback.errors import EmitterError, Stopped
from chargeback.store.tenant import TenantStore
from tests.support.facts import line
from tests.support.focus import BilledLine, write_bill

FIRST, NEXT = date(2026, 2, 27), date(2026, 3, 1)
CONTEXT = EmitterContext("finops", "acme", "acme-id", "test_cloud", "USD", MONTHLY)


def emit(facts: Facts, folder: Path, *days: date, **more: Any) -> None:
    """Write the months of some days."""
    emitter = emitter_type.open(CONTEXT, FocusParams.model_validate({"output_dir": str(folder), **more}), Event())
    emitter.emit([Period.containing(day, MONTHLY) for day in days], facts)


def tree(folder: Path) -> list[str]:
    """Return all files of a folder."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_month_is_a_file(store: TenantStore, facts: Facts, tmp_path: Path) -> None:
    """Each file has the complete bill of its month; the metadata describes the files of the folder."""
    write_bill(store, [BilledLine(line(day, "12.5", product=name)) for day in (FIRST, NEXT) for name in "ab"])
    folder = tmp_path / "focus"
    emit(facts, folder, FIRST, NEXT)
    data = folder / "data" / "acme-identities"
    assert [file.name for file in sorted(data.iterdir())] == ["2026-02.parquet", "2026-03.parquet"]
    for file in data.iterdir():
        table = pq.read_table(file)
        assert sum(table.column("BilledCost").to_pylist()) == 25
        assert {f"{start:%Y-%m}" for start in table.column("BillingPeriodStart").to_pylist()} == {file.stem}
    (schema,) = (folder / "metadata" / "schemas").iterdir()
    columns = [each["ColumnName"] for each in json.loads(schema.read_text(encoding="utf-8"))["ColumnDefinition"]]
    assert columns == pq.read_schema(data / "2026-02.parquet").names
    instances = json.loads((folder / "metadata" / "dataset_instances.json").read_text(encoding="utf-8"))
    assert [each["DatasetInstanceName"] for each in instances["DatasetInstance"]] == ["acme-identities"]


def test_a_file_is_replaced(store: TenantStore, facts: Facts, tmp_path: Path) -> None:
    """A recalculated day replaces the file of its month only; equal data gives equal bytes."""
    write_bill(store, [BilledLine(line(day, "1")) for day in (FIRST, NEXT)])
    folder = tmp_path / "focus"
    emit(facts, folder, FIRST, NEXT, format="csv")
    files = {path: (folder / path).read_bytes() for path in tree(folder)}
    emit(facts, folder, FIRST, NEXT, format="csv")
    assert {path: (folder / path).read_bytes() for path in tree(folder)} == files
    write_bill(store, [BilledLine(line(FIRST, "3"))])
    emit(facts, folder, FIRST, format="csv")
    february, march = (folder / "data" / "acme-identities" / f"2026-0{month}.csv" for month in (2, 3))
    assert february.read_bytes() != files[str(february.relative_to(folder))]
    assert march.read_bytes() == files[str(march.relative_to(folder))]


@pytest.mark.parametrize("kind", [("1.4", "topics"), ("1.2", "none")])
def test_versions_and_splits(store: TenantStore, facts: Facts, tmp_path: Path, kind: tuple[str, str]) -> None:
    """Each split is a separate dataset in the same folder."""
    version, split = kind
    write_bill(store, [BilledLine(line(FIRST, "4"), topics=(("a", 1), ("b", 3)))])
    emit(facts, tmp_path, FIRST)
    emit(facts, tmp_path, FIRST, version=version, split=split)
    table = pq.read_table(tmp_path / "data" / f"acme-{split}" / "2026-02.parquet")
    assert table.num_rows == (2 if split == "topics" else 1)
    assert ("ServiceProviderName" in table.schema.names) == (version == "1.4")
    instances = json.loads((tmp_path / "metadata" / "dataset_instances.json").read_text(encoding="utf-8"))
    names = {each["DatasetInstanceName"] for each in instances["DatasetInstance"]}
    assert names == {"acme-identities", f"acme-{split}"}


def test_a_stop_leaves_the_old_file(store: TenantStore, facts: Facts, tmp_path: Path) -> None:
    """After a stop, no partial file remains."""
    write_bill(store, [BilledLine(line(FIRST, "4"))])

    class Ending:
        """Facts of a run that is stopped while a file is written."""

        def focus(self, period: Period, kind: FocusKind) -> Any:
            return facts.focus(period, kind)

        def focus_metadata(self, period: Period, kind: FocusKind) -> Any:
            return facts.focus_metadata(period, kind)

        def check(self) -> None:
            raise Stopped("the run was stopped")

    with pytest.raises(Stopped):
        emit(Ending(), tmp_path, FIRST)  # type: ignore[arg-type]
    assert tree(tmp_path / "data") == []


@pytest.mark.parametrize(
    ("params", "wrong"),
    [({}, "output_dir"), ({"version": "1.3"}, "version"), ({"split": "teams"}, "split"), ({"format": "xml"}, "format")],
)
def test_params(tmp_path: Path, params: dict[str, str], wrong: str) -> None:
    """The error for an unknown value names its parameter."""
    given = params and {"output_dir": str(tmp_path), **params}
    with pytest.raises(ValidationError, match=wrong):
        FocusParams.model_validate(given)


def test_destinations(tmp_path: Path) -> None:
    """Different splits of one tenant may share a folder; versions and formats of the same split may not."""
    params = [
        FocusParams.model_validate({"output_dir": str(tmp_path), **more})
        for more in ({}, {"version": "1.4"}, {"format": "csv"}, {"split": "none"})
    ]
    first, *same, other = (emitter_type.destinations(CONTEXT, each) for each in params)
    assert same == [first, first]
    assert other != first
    assert emitter_type.aggregations == {"monthly"}


def described(split: str, *days: str, updated: str = "2026-11-20T00:00:00Z") -> dict[str, Any]:
    """Return the metadata of some days of a dataset."""
    sectors = [
        {
            "TimeSectorStart": f"{day}T00:00:00Z",
            "TimeSectorEnd": f"{day}T23:59:59Z",
            "TimeSectorComplete": True,
            "TimeSectorLastUpdated": updated,
        }
        for day in days
    ]
    recency = {"DatasetInstanceId": f"id-{split}", "RecencyLastUpdated": updated, "TimeSectors": sectors}
    return {
        "DataGenerator": {"DataGenerator": "Chargeback"},
        "DatasetInstance": [{"DatasetInstanceId": f"id-{split}", "DatasetInstanceName": f"acme-{split}"}],
        "Recency": [recency] if days else [],
        "Schema": [{"SchemaId": f"schema-{split}", "ColumnDefinition": []}],
    }


def content(file: Path) -> Any:
    """Return the content of a file of metadata."""
    return json.loads(file.read_text(encoding="utf-8"))


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    """Each month is a file below its dataset; the metadata is one file per kind of entry."""
    folder = FocusFolder(tmp_path / "focus")
    metadata = described("topics", "2026-11-01")
    assert folder.write_month(metadata, date(2026, 11, 3), [b"some ", memoryview(b"rows")]).read_bytes() == b"some rows"
    folder.write_metadata(metadata)
    assert sorted(str(path.relative_to(folder.folder)) for path in folder.folder.rglob("*.*")) == [
        "data/acme-topics/2026-11.parquet",
        "metadata/data_generator.json",
        "metadata/dataset_instances.json",
        "metadata/recency/acme-topics.json",
        "metadata/schemas/schema-topics.json",
    ]


def test_other_datasets_and_months_remain(tmp_path: Path) -> None:
    """Metadata of the months that are written is replaced; that of other months and datasets remains."""
    folder = FocusFolder(tmp_path)
    folder.write_metadata(described("topics", "2026-10-31", "2026-11-01"))
    folder.write_metadata(described("none", "2026-10-30"))
    folder.write_metadata(described("topics", "2026-11-02", updated="2026-11-21T00:00:00Z"))
    instances = content(tmp_path / "metadata" / "dataset_instances.json")["DatasetInstance"]
    assert [each["DatasetInstanceName"] for each in instances] == ["acme-none", "acme-topics"]
    recency = content(tmp_path / "metadata" / "recency" / "acme-topics.json")
    assert [each["TimeSectorStart"][:10] for each in recency["TimeSectors"]] == ["2026-10-31", "2026-11-02"]
    assert recency["DatasetInstanceLastUpdated"] == "2026-11-21T00:00:00Z"


def test_metadata_of_no_days(tmp_path: Path) -> None:
    """If no day was calculated, there is no metadata about times."""
    FocusFolder(tmp_path).write_metadata(described("none"))
    assert not (tmp_path / "metadata" / "recency").exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """The error names the file to delete."""
    file = tmp_path / "metadata" / "dataset_instances.json"
    file.parent.mkdir()
    file.write_text("{", encoding="utf-8")
    with pytest.raises(EmitterError, match=f"{file} cannot be read: .*; delete it to have it written again"):
        FocusFolder(tmp_path).write_metadata(described("none"))
