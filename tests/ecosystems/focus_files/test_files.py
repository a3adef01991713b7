"""The selection of files: folders, patterns, buckets, and the manifests of providers."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import obstore
import pytest

from chargeback.ecosystems.contract import TenantContext
from chargeback.errors import SourceDataError, SourceUnavailable
from tests.ecosystems.focus_files.conftest import lines, row, settings_for, settled, total, write_csv, write_parquet
from tests.support.clock import NOW
from tests.support.objects import ObjectServer


def write_text(path: Path, text: str) -> Path:
    """Write a text file, dated an hour before the tests' clock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return settled(path)


@pytest.mark.parametrize(
    ("place", "expected"),
    [("", "0.08"), ("a.csv", "0.01"), ("*.csv", "0.01"), ("sub/**/*.csv", "0.02"), ("sub", "0.06")],
)
def test_a_place_is_a_folder_a_file_or_a_pattern(
    context: TenantContext, tmp_path: Path, place: str, expected: str
) -> None:
    """A folder includes all files below it; other extensions are ignored."""
    bill = tmp_path / "bill"
    write_csv(bill / "a.csv", [row(EffectiveCost="0.01")])
    write_csv(bill / "sub" / "deep" / "b.csv", [row(EffectiveCost="0.02")])
    write_parquet(bill / "sub" / "c.parquet", [row(EffectiveCost="0.04")])
    write_csv(bill / "d.CSV", [row(EffectiveCost="0.01")])
    write_text(bill / "notes.txt", "not a bill")
    assert total(lines(context, settings_for(bill / place))) == Decimal(expected)


def test_one_format_only(context: TenantContext, tmp_path: Path) -> None:
    """If a format is configured, files of the other format are ignored."""
    write_csv(tmp_path / "a.csv", [row(EffectiveCost="0.01")])
    write_parquet(tmp_path / "b.parquet", [row(EffectiveCost="0.02")])
    assert total(lines(context, settings_for(tmp_path, format="csv"))) == Decimal("0.01")
    assert total(lines(context, settings_for(tmp_path, format="parquet"))) == Decimal("0.02")


def test_no_files(context: TenantContext, tmp_path: Path) -> None:
    """An empty or missing folder is an error with its name, not a bill of zero."""
    with pytest.raises(SourceDataError, match=r"has no file ending in \.csv, \.csv\.gz"):
        lines(context, settings_for(tmp_path))
    with pytest.raises(SourceUnavailable, match="missing does not exist"):
        lines(context, settings_for(tmp_path / "missing"))


def test_a_file_that_is_being_written(context: TenantContext, tmp_path: Path) -> None:
    """The bill is not read until the file is a minute old."""
    written = write_csv(tmp_path / "a.csv", [row()])
    at = (NOW - timedelta(seconds=20)).timestamp()
    os.utime(written, (at, at))
    with pytest.raises(SourceUnavailable, match=r"a\.csv was written less than 60 seconds ago"):
        lines(context, settings_for(tmp_path))
    assert lines(context, settings_for(tmp_path, settle_seconds=10))


def test_the_manifests_of_aws(context: TenantContext, tmp_path: Path) -> None:
    """Only the files of the newest manifest of each period count, by names from the root of the bucket."""
    export = tmp_path / "focus" / "kafka"
    for name, cost in (("old-1", "0.01"), ("new-1", "0.02"), ("new-2", "0.04")):
        write_parquet(export / "data" / "BILLING_PERIOD=2026-01" / f"{name}.parquet", [row(EffectiveCost=cost)])
    write_parquet(export / "data" / "BILLING_PERIOD=2025-12" / "dec.parquet", [row(EffectiveCost="0.08")])

    def manifest(period: str, run: str, *names: str) -> Path:
        files = [f"s3://bills/exports/focus/kafka/data/BILLING_PERIOD={period}/{name}.parquet" for name in names]
        folder = export / "metadata" / f"BILLING_PERIOD={period}" / run
        return write_text(folder / "kafka-Manifest.json", json.dumps({"dataFiles": files}))

    old = manifest("2026-01", "1", "old-1")
    os.utime(old, ((NOW - timedelta(days=1)).timestamp(),) * 2)
    manifest("2026-01", "2", "new-1", "new-2")
    manifest("2025-12", "1", "dec")
    assert total(lines(context, settings_for(tmp_path))) == Decimal("0.14")
    (export / "data" / "BILLING_PERIOD=2026-01" / "new-2.parquet").unlink()
    with pytest.raises(SourceDataError, match=r"kafka-Manifest\.json names s3://.*new-2\.parquet, which is not there"):
        lines(context, settings_for(tmp_path))


def test_the_manifests_of_azure(context: TenantContext, tmp_path: Path) -> None:
    """Only the files of the newest run of a period count."""
    for run, submitted, cost in (("9f", "2026-01-30T06:00:00Z", "0.01"), ("1a", "2026-01-31T06:00:00Z", "0.02")):
        folder = tmp_path / "costs" / "20260101-20260131" / run
        write_csv(folder / "part_0_0001.csv", [row(EffectiveCost=cost)])
        info = {"submittedTime": submitted, "startDate": "2026-01-01T00:00:00", "endDate": "2026-01-31T00:00:00"}
        blobs = [{"blobName": f"exports/costs/20260101-20260131/{run}/part_0_0001.csv", "byteCount": 1}]
        write_text(folder / "manifest.json", json.dumps({"runInfo": info, "blobs": blobs}))
    assert total(lines(context, settings_for(tmp_path))) == Decimal("0.02")


@pytest.mark.parametrize("text", ["{", "[]", '{"files": []}', '{"blobs": [{"name": "x"}]}'])
def test_a_manifest_that_is_none(context: TenantContext, tmp_path: Path, text: str) -> None:
    """The error names an invalid manifest."""
    write_csv(tmp_path / "a.csv", [row()])
    write_text(tmp_path / "manifest.json", text)
    with pytest.raises(SourceDataError, match=r"manifest\.json is no manifest of AWS or Azure"):
        lines(context, settings_for(tmp_path))


def test_objects(context: TenantContext, tmp_path: Path, object_storage: ObjectServer) -> None:
    """A bucket gives the same bill as a folder; local copies are reused until an object changes, and then removed."""
    place = object_storage.location()
    first, second = write_csv(tmp_path / "a.csv", [row()]), write_parquet(tmp_path / "b.parquet", [row()])
    store = object_storage.raw(place.prefix)
    for path in (first, second):
        obstore.put(store, f"focus/{path.name}", path.read_bytes())
    settings = settings_for(f"{place}/focus", object_store=object_storage.written, settle_seconds=0)
    assert total(lines(context, settings)) == Decimal("0.36")
    copies = Path(context.state_dir) / "bills"
    before = {path: path.stat().st_ino for path in copies.rglob("*") if path.is_file()}
    assert total(lines(context, settings)) == Decimal("0.36")
    assert before == {path: path.stat().st_ino for path in copies.rglob("*") if path.is_file()}
    obstore.delete(store, "focus/b.parquet")
    assert total(lines(context, settings)) == Decimal("0.18")
    assert len([path for path in copies.rglob("*") if path.is_file()]) == 1
