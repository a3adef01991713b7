"""The emitter ``csv``."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event

import pytest
from pydantic import ValidationError

from chargeback.emitters.contract import EmitterContext, Facts, Period
from chargeback.emitters.csv_files import CsvParams, emitter_type
from chargeback.store.tenant import TenantStore
from tests.support.facts import Share, days_from, write_shares
from tests.support.serving import client_of, services_for

MONDAY = date(2026, 1, 26)


def emit(
    facts: Facts, folder: Path, *days: date, aggregation: str = "daily", tenant_id: str = "acme-id", **more: str
) -> list[Path]:
    """Emit the periods of ``days``; return their files."""
    context = EmitterContext("finance", "acme", tenant_id, "test_cloud", "USD", aggregation)
    emitter = emitter_type.open(context, CsvParams.model_validate({"output_dir": str(folder), **more}), Event())
    periods = {Period.containing(day, aggregation): None for day in days}
    for period in periods:
        emitter.emit([period], facts)
    return [emitter.path_of(period) for period in periods]


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def test_a_daily_file_is_the_export_of_its_day(store: TenantStore, facts: Facts, tmp_path: Path) -> None:
    """A daily file has the same bytes as the export, even if several rows have the same ids."""
    write_shares(
        store.facts,
        [
            Share(day, who, "0.1", line=line)
            for day in days_from(MONDAY, 2)
            for who in ("=sa,1", "sa-2")
            for line in "ab"
        ],
    )
    (path,) = emit(facts, tmp_path / "out", MONDAY)
    assert path == tmp_path / "out" / "acme-id_2026-01-26.csv"
    with client_of(services_for(store)) as client:
        asked = {"start_date": str(MONDAY), "end_date": str(MONDAY)}
        exported = client.post("/api/v1/tenants/acme/export", json=asked).content
    assert path.read_bytes() == exported
    assert len(rows_of(path)) == 4


@pytest.mark.parametrize(("aggregation", "name"), [("weekly", "2026-01-26"), ("monthly", "2026-01-01")])
def test_coarser_periods_are_summed(
    store: TenantStore, facts: Facts, tmp_path: Path, aggregation: str, name: str
) -> None:
    """There is one row per period and combination of ids, dated at the start of the period, and the sums are exact."""
    days = days_from(MONDAY - timedelta(days=3), 14)
    shares = [
        Share(day, who, f"-{n}.000000000001", line=line) for n, day in enumerate(days) for who in "xy" for line in "ab"
    ]
    write_shares(store.facts, shares)
    paths = emit(facts, tmp_path, *days, aggregation=aggregation)
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for share in shares:
        sums[str(Period.containing(share.day, aggregation).start)] += Decimal(share.amount)
    for path in paths:
        start = path.stem.removeprefix("acme-id_")
        rows = rows_of(path)
        assert [(row["timestamp"], row["identity_id"]) for row in rows] == [(f"{start}T00:00:00Z", who) for who in "xy"]
        assert sum(Decimal(row["amount"]) for row in rows) == sums[start]
    assert name in {path.stem.removeprefix("acme-id_") for path in paths}


def test_hourly_rows_stay_hourly_or_are_summed_to_days(store: TenantStore, facts: Facts, tmp_path: Path) -> None:
    """Both aggregations write one file per day: one has a row for each hour, the other their sum."""
    write_shares(store.facts, [Share(MONDAY, "sa-1", f"{hour}.5", hour=hour) for hour in range(3)])
    (fine,) = emit(facts, tmp_path / "h", MONDAY, aggregation="hourly")
    assert [row["timestamp"] for row in rows_of(fine)] == [f"2026-01-26T0{hour}:00:00Z" for hour in range(3)]
    (coarse,) = emit(facts, tmp_path / "d", MONDAY)
    assert [(row["timestamp"], row["amount"]) for row in rows_of(coarse)] == [("2026-01-26T00:00:00Z", "4.50")]


def test_a_day_without_rows_is_a_header(facts: Facts, tmp_path: Path) -> None:
    """A day without cost has a file with only a header."""
    (path,) = emit(facts, tmp_path, MONDAY)
    assert path.read_bytes().startswith(b"timestamp,")
    assert rows_of(path) == []


def test_names_and_ids_stay_in_the_folder(facts: Facts, tmp_path: Path) -> None:
    """Every placeholder is replaced, and an id with a path in it is encoded."""
    template = "{tenant_name}-{emitter}-{tenant_id}-{date}"
    (path,) = emit(facts, tmp_path / "out", MONDAY, tenant_id="../../etc/x", filename_template=template)
    assert path.name == "acme-finance-..%2F..%2Fetc%2Fx-2026-01-26"
    assert list((tmp_path / "out").iterdir()) == [path]


def test_params() -> None:
    """The folder is required, the template is checked, and unknown keys are errors."""
    for wrong in ({}, {"output_dir": "x", "filename_template": "a/{date}"}, {"output_dir": "x", "mode": "w"}):
        with pytest.raises(ValidationError):
            CsvParams.model_validate(wrong)


def test_destinations_differ_only_where_files_do(tmp_path: Path) -> None:
    """Two spellings of one folder are the same destination; another template or emitter name is another destination."""

    def destinations(folder: Path, template: str = "{date}", name: str = "finance") -> tuple[str, ...]:
        params = CsvParams.model_validate({"output_dir": str(folder), "filename_template": template})
        return emitter_type.destinations(EmitterContext(name, "acme", "id", "test_cloud", "USD"), params)

    assert destinations(tmp_path) == destinations(tmp_path / "x" / "..", name="other")
    assert destinations(tmp_path) != destinations(tmp_path, "{date}.csv")
    assert destinations(tmp_path, "{emitter}{date}") != destinations(tmp_path, "{emitter}{date}", "other")
