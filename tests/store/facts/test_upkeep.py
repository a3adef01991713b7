"""What nobody can need any more leaves the disk, and nothing else does."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.store.facts.files import read_file
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import (
    CHARGEBACKS_TABLE,
    DIMENSIONS_TABLE,
    MEMBERS_TABLE,
    FactTables,
    read_day,
)
from chargeback.store.facts.upkeep import (
    LEFTOVER_AGE,
    STAMP,
    CleanupStats,
    clean_table,
    record_upkeep,
    rewrite_dimensions,
    upkeep_is_due,
)
from tests.store.facts.conftest import on_disk
from tests.store.facts.test_tables import rows
from tests.support.facts import Share, days_from, write_shares

DAY = date(2026, 1, 1)
OLD = LEFTOVER_AGE.total_seconds() + 3600


@pytest.fixture
def tables(place: Place) -> FactTables:
    """Empty tables."""
    tables = FactTables(place)
    tables.create()
    return tables


def forget_at_once(tables: FactTables, name: str) -> None:
    """Let the table keep removed files for no time at all, where Delta's own limit is a week."""
    limits = {"delta.deletedFileRetentionDuration": "interval 1 milliseconds"}
    tables.open(name).alter.set_table_properties(limits)


def log_of(tables: FactTables, name: str) -> list[str]:
    """The names of the files of a log."""
    folder = tables.root.parent / "saved"
    tables.place.save(folder, [])
    return sorted(path.name for path in (folder / name / "_delta_log").iterdir())


def age(path: Path, seconds: float = OLD) -> None:
    """Make a file or folder look as if it had not changed for so long."""
    os.utime(path, (time.time() - seconds,) * 2)


def test_what_was_replaced_lately_stays(tables: FactTables) -> None:
    """A reader that listed the files before a day was replaced can still read them after the upkeep."""
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    listed = tables.snapshot(MEMBERS_TABLE).files
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "b"), epoch=1)
    assert clean_table(tables, MEMBERS_TABLE, epoch=1) == CleanupStats()
    assert read_file(listed[0])["identity_id"].to_pylist() == ["a"]


def test_what_was_replaced_long_ago_goes(tables: FactTables) -> None:
    """Files that left the table longer ago than it keeps them are deleted, once; what is in the table stays."""
    forget_at_once(tables, MEMBERS_TABLE)
    for name in "abc":
        tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, name), epoch=1)
    time.sleep(0.01)
    assert clean_table(tables, MEMBERS_TABLE, epoch=1) == CleanupStats(files=2)
    version = tables.snapshot(MEMBERS_TABLE).version
    assert clean_table(tables, MEMBERS_TABLE, epoch=1) == CleanupStats()
    assert tables.snapshot(MEMBERS_TABLE).version == version
    assert len([path for path in tables.place.data_files(MEMBERS_TABLE) if "_delta_log" not in path]) == 1
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["c"]


@on_disk
def test_files_of_killed_writers_go_when_they_are_old(tables: FactTables) -> None:
    """A data file that no commit names and a half-written one are deleted once they are older than a week."""
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    folder = tables.root / MEMBERS_TABLE / f"date={DAY}"
    log = tables.root / MEMBERS_TABLE / "_delta_log"
    for name in ("orphan.parquet", "half.parquet#1"):
        (folder / name).write_bytes(b"x")
    (log / "00000000000000000009.json#1").write_bytes(b"x")
    assert clean_table(tables, MEMBERS_TABLE, epoch=1) == CleanupStats()
    for path in [*folder.iterdir(), *log.iterdir()]:
        age(path)
    assert clean_table(tables, MEMBERS_TABLE, epoch=1) == CleanupStats(files=1, leftovers=2)
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["a"]
    assert not list((tables.root / MEMBERS_TABLE).rglob("*#1"))


@on_disk
def test_empty_folders_of_days_go(tables: FactTables) -> None:
    """The folder of a day that is gone from the table and from the disk is removed when it is old."""
    kept = DAY + timedelta(days=1)
    for day in (DAY, kept):
        tables.replace_day(MEMBERS_TABLE, day, rows(day, "a"), epoch=1)
    forget_at_once(tables, MEMBERS_TABLE)
    tables.delete_before(MEMBERS_TABLE, kept, epoch=1)
    time.sleep(0.01)
    assert clean_table(tables, MEMBERS_TABLE, epoch=1) == CleanupStats(files=1)
    for folder in (tables.root / MEMBERS_TABLE).glob("date=*"):
        age(folder)
    assert clean_table(tables, MEMBERS_TABLE, epoch=1) == CleanupStats(folders=1)
    assert [folder.name for folder in (tables.root / MEMBERS_TABLE).glob("date=*")] == [f"date={kept}"]


def test_the_log_stays_short(tables: FactTables) -> None:
    """A checkpoint takes the place of commits that are older than the table keeps them; readers old and new go on."""
    limits = {"delta.logRetentionDuration": "interval 1 milliseconds"}
    tables.open(MEMBERS_TABLE).alter.set_table_properties(limits)
    reader = FactTables(tables.place)
    reader.snapshot(MEMBERS_TABLE)
    for number in range(12):
        tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, str(number)), epoch=3)
    time.sleep(0.01)
    clean_table(tables, MEMBERS_TABLE, epoch=3)
    assert len(log_of(tables, MEMBERS_TABLE)) <= 4
    for each in (reader, FactTables(tables.place)):
        assert read_day(each, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["11"]
    assert tables.open(MEMBERS_TABLE).transaction_version("chargeback.lease") == 3


@on_disk
def test_upkeep_beside_a_writer(tables: FactTables) -> None:
    """While another process commits days, upkeep neither fails nor takes anything from the table."""
    forget_at_once(tables, MEMBERS_TABLE)
    writer = FactTables(tables.place)

    def replace_often() -> None:
        for number in range(60):
            day = DAY + timedelta(days=number % 3)
            writer.replace_day(MEMBERS_TABLE, day, rows(day, str(number)), epoch=1)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_often)
        while not writing.done():
            clean_table(tables, MEMBERS_TABLE, epoch=1)
        writing.result()
    found = [read_day(tables, MEMBERS_TABLE, DAY + timedelta(days=n))["identity_id"].to_pylist() for n in range(3)]
    assert found == [["57"], ["58"], ["59"]]


def test_a_table_never_made_needs_nothing(place: Place) -> None:
    """Upkeep of storage that was never used does nothing."""
    assert clean_table(FactTables(place), CHARGEBACKS_TABLE, epoch=1) == CleanupStats()


def test_the_time_of_upkeep_is_noted(place: Place) -> None:
    """The folder of facts says when it was last seen to; a stamp that cannot be read means never, and so does one that
    a clock has written which has been put back since."""
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    place.prepare(MEMBERS_TABLE)
    assert upkeep_is_due(place, now)
    record_upkeep(place, now)
    assert not upkeep_is_due(place, now)
    for stamp in ("yesterday", *((now + timedelta(hours=hours)).isoformat() for hours in (-25, 25))):
        place.put(STAMP, stamp.encode())
        assert upkeep_is_due(place, now)


def test_the_register_of_dimensions_becomes_one_file(tables: FactTables) -> None:
    """With many files the register is made one, without the dimensions of days that are gone."""
    days = days_from(DAY, 4)
    for number, day in enumerate(days):
        write_shares(tables, [Share(day, f"sa-{number}", "1.5"), Share(day, "sa-always", "1.5")])
    tables.delete_before(CHARGEBACKS_TABLE, days[1], epoch=1)
    assert not rewrite_dimensions(tables, epoch=1, most_files=4)
    assert rewrite_dimensions(tables, epoch=1, most_files=3)
    files = tables.snapshot(DIMENSIONS_TABLE).files
    assert len(files) == 1
    found: pa.Table = read_file(files[0])
    assert set(found["identity_id"].to_pylist()) == {"sa-1", "sa-2", "sa-3", "sa-always"}
    assert found["dimension_id"].to_pylist() == sorted(found["dimension_id"].to_pylist())
