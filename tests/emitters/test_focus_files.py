"""A folder of data in FOCUS: files are replaced as a whole, and what is said of others remains."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chargeback.emitters.focus import FocusFolder
from chargeback.errors import EmitterError


def described(split: str, *days: str, updated: str = "2026-11-20T00:00:00Z") -> dict[str, Any]:
    """The metadata of some days of a dataset."""
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
    """What a file of metadata says."""
    return json.loads(file.read_text(encoding="utf-8"))


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    """Each month is a file below its dataset; the metadata have a file for each thing that they describe."""
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
    """The days of the months that are written again are those of now, all others stay as they were."""
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
    """Where nothing was calculated nothing is said of times."""
    FocusFolder(tmp_path).write_metadata(described("none"))
    assert not (tmp_path / "metadata" / "recency").exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """The error says which file to delete."""
    file = tmp_path / "metadata" / "dataset_instances.json"
    file.parent.mkdir()
    file.write_text("{", encoding="utf-8")
    with pytest.raises(EmitterError, match=f"{file} cannot be read: .*; delete it to have it written again"):
        FocusFolder(tmp_path).write_metadata(described("none"))
