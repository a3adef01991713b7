"""A day of facts is replaced whole, by the holder of the lease only."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from chargeback.errors import DamagedFacts, LeaseLost, StorageError
from chargeback.model.days import DayRange
from chargeback.model.usage import MEMBERS
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, MEMBERS_TABLE, FactTables, read_day
from tests.store.facts.conftest import on_disk

DAY = date(2026, 1, 1)


def rows(day: date, *identities: str) -> pa.Table:
    """Members of a day."""
    return pa.table(
        {
            "date": pa.array([day] * len(identities), pa.date32()),
            "resource_id": pa.array(["lkc-1"] * len(identities), pa.string()),
            "identity_id": pa.array(identities, pa.string()),
            "relation": pa.array(["active"] * len(identities), pa.string()),
        },
        schema=MEMBERS,
    )


@pytest.fixture
def tables(place: Place) -> FactTables:
    """Empty tables."""
    tables = FactTables(place)
    tables.create()
    return tables


def test_a_table_never_written_is_empty(place: Place) -> None:
    """Readers may come before the first run."""
    assert FactTables(place).snapshot(CHARGEBACKS_TABLE).files == ()


def test_a_day_is_replaced_whole(tables: FactTables) -> None:
    """What was there before is gone, other days stay, and a day is one file."""
    other = DAY + timedelta(days=1)
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a", "b"), epoch=1)
    tables.replace_day(MEMBERS_TABLE, other, rows(other, "c"), epoch=1)
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "d"), epoch=1)
    snapshot = tables.snapshot(MEMBERS_TABLE)
    assert snapshot.days == [DAY, other]
    assert snapshot.rows == 2
    assert [file.rows for file in snapshot.within(DayRange(DAY, other))] == [1]
    assert read_day(tables, MEMBERS_TABLE, DAY).equals(rows(DAY, "d"))


def test_an_empty_day_replaces_a_full_one(tables: FactTables) -> None:
    """A day may become empty, and an empty day may be made empty again."""
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    for _ in range(2):
        tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY), epoch=1)
        assert tables.snapshot(MEMBERS_TABLE).days == []
    assert read_day(tables, MEMBERS_TABLE, DAY).equals(rows(DAY))


def test_rows_of_another_day_are_refused(tables: FactTables) -> None:
    """A row outside the day is an error, and nothing is written."""
    with pytest.raises(StorageError, match="members"):
        tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY + timedelta(days=1), "a"), epoch=1)
    assert tables.snapshot(MEMBERS_TABLE).files == ()


def test_an_older_epoch_writes_nothing(tables: FactTables) -> None:
    """Once a successor has written, whoever lost the lease is refused, also for another day."""
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=2)
    with pytest.raises(LeaseLost):
        tables.replace_day(MEMBERS_TABLE, DAY + timedelta(days=1), rows(DAY + timedelta(days=1), "b"), epoch=1)
    assert tables.snapshot(MEMBERS_TABLE).days == [DAY]


def test_a_writer_with_an_old_snapshot_sees_its_successor(tables: FactTables) -> None:
    """Another process's commit is noticed even by a writer that opened the table before it."""
    sleeper = FactTables(tables.place)
    sleeper.snapshot(MEMBERS_TABLE)
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "new"), epoch=5)
    with pytest.raises(LeaseLost):
        sleeper.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "old"), epoch=4)
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["new"]


def test_a_run_looks_at_a_table_once(tables: FactTables) -> None:
    """While it holds the lease nobody else writes: it sees what it writes itself. One who has lost the lease without
    knowing sees old days, and is refused all the same."""
    next_day = DAY + timedelta(days=1)
    successor = FactTables(tables.place)
    with tables.alone():
        assert tables.snapshot(MEMBERS_TABLE).days == []
        tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
        assert tables.snapshot(MEMBERS_TABLE).days == [DAY]
        successor.replace_day(MEMBERS_TABLE, next_day, rows(next_day, "b"), epoch=2)
        assert tables.snapshot(MEMBERS_TABLE).days == [DAY]
        with pytest.raises(LeaseLost):
            tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "c"), epoch=1)
    assert tables.snapshot(MEMBERS_TABLE).days == [DAY, next_day]
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["a"]


def test_readers_see_whole_days_while_days_are_replaced(tables: FactTables) -> None:
    """A reader of the same or another process finds the old day or the new one, never a mix."""
    reader = FactTables(tables.place)

    def replace_often() -> None:
        for number in range(8 if tables.place.options else 20):
            tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, *[str(number)] * 50), epoch=1)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_often)
        while not writing.done():
            found = read_day(reader, MEMBERS_TABLE, DAY)["identity_id"].to_pylist()
            assert len(set(found)) <= 1
            assert len(found) in {0, 50}
        writing.result()


def test_a_missing_file_is_named(tables: FactTables) -> None:
    """A facts file that somebody deleted is an error that names it."""
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    tables.place.delete(tables.snapshot(MEMBERS_TABLE).files[0].path)
    with pytest.raises(DamagedFacts, match=r"the file members/date=2026-01-01/\S+ is missing"):
        read_day(tables, MEMBERS_TABLE, DAY)


def test_old_days_go_in_one_commit(tables: FactTables) -> None:
    """Every day before a given one is removed at once, by the holder of the lease; where there is none, no commit."""
    days = [DAY + timedelta(days=offset) for offset in range(4)]
    for day in days:
        tables.replace_day(MEMBERS_TABLE, day, rows(day, "a"), epoch=2)
    before = tables.snapshot(MEMBERS_TABLE).version
    tables.delete_before(MEMBERS_TABLE, days[2], epoch=2)
    assert tables.snapshot(MEMBERS_TABLE).days == days[2:]
    tables.delete_before(MEMBERS_TABLE, days[2], epoch=3)
    assert tables.snapshot(MEMBERS_TABLE).version == before + 1
    tables.delete_before(MEMBERS_TABLE, days[3], epoch=3)
    with pytest.raises(LeaseLost):
        tables.delete_before(MEMBERS_TABLE, days[3] + timedelta(days=1), epoch=2)
    assert tables.snapshot(MEMBERS_TABLE).days == days[3:]


def test_several_days_are_one_commit(tables: FactTables) -> None:
    """Full and empty days are replaced together; other days stay, and days that only become empty are no new files."""
    days = [DAY + timedelta(days=offset) for offset in range(4)]
    tables.replace_days(MEMBERS_TABLE, {day: rows(day, "old") for day in days}, epoch=1)
    before = tables.snapshot(MEMBERS_TABLE).version
    new = {days[0]: rows(days[0], "a", "b"), days[1]: rows(days[1]), days[3]: rows(days[3], "c")}
    tables.replace_days(MEMBERS_TABLE, new, epoch=1)
    stored = {day: read_day(tables, MEMBERS_TABLE, day)["identity_id"].to_pylist() for day in days}
    assert list(stored.values()) == [["a", "b"], [], ["old"], ["c"]]
    tables.replace_days(MEMBERS_TABLE, {day: rows(day) for day in days[:3]}, epoch=1)
    tables.replace_days(MEMBERS_TABLE, {}, epoch=1)
    assert tables.snapshot(MEMBERS_TABLE).days == [days[3]]
    assert tables.snapshot(MEMBERS_TABLE).version == before + 2


def test_several_days_are_fenced_like_one(tables: FactTables) -> None:
    """A batch of a writer that has lost its lease is refused as a whole, although its days are others."""
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=2)
    others = [DAY + timedelta(days=offset) for offset in (1, 2)]
    with pytest.raises(LeaseLost):
        tables.replace_days(MEMBERS_TABLE, {day: rows(day, "b") for day in others}, epoch=1)
    assert tables.snapshot(MEMBERS_TABLE).days == [DAY]


@on_disk
def test_a_commit_whose_log_cannot_be_forced_to_the_disk_keeps_its_file(
    tables: FactTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk refuses after the commit went in: that is an error, and the table still has what it refers to."""
    fsync = os.fsync

    def refuse_logs(descriptor: int) -> None:
        if "_delta_log" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_logs)
    with pytest.raises(StorageError, match="Input/output error"):
        tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    monkeypatch.undo()
    assert read_day(FactTables(tables.place), MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["a"]
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "b"), epoch=1)
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["b"]


@pytest.mark.parametrize("error", [DeltaError, CommitFailedError, OSError])
def test_a_commit_whose_answer_is_lost_went_in(
    tables: FactTables, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """An error after the commit went in is none: the day is there, once."""
    commit = DeltaTable.create_write_transaction
    answers: Iterator[Exception | None] = iter([error("the answer is lost"), None])

    def commit_and_lose_the_answer(*arguments: Any, **named: Any) -> None:
        commit(*arguments, **named)
        if (lost := next(answers)) is not None:
            raise lost

    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit_and_lose_the_answer)
    before = tables.snapshot(MEMBERS_TABLE).version
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    assert tables.snapshot(MEMBERS_TABLE).version == before + 1
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["a"]
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "b"), epoch=1)
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["b"]


def test_a_commit_that_did_not_go_in_is_an_error(tables: FactTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """The day stays as it was. The new file is left to upkeep, which knows what no table refers to."""
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)

    def refuse(*_: Any, **__: Any) -> None:
        raise DeltaError("no space left")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)
    with pytest.raises(StorageError, match="no space left"):
        tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "b"), epoch=1)
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["a"]
    assert len(tables.place.data_files(MEMBERS_TABLE)) == 2
