"""A loss of power in the middle of a commit costs that commit, not the table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest

from chargeback.store.facts.places import LOG, Folder
from chargeback.store.facts.tables import MEMBERS_TABLE, FactTables
from tests.store.facts.test_tables import DAY, rows

#: With a checkpoint every ten commits: at the ninth and the nineteenth.
COMMITS = 22


def empty(path: Path) -> None:
    """The file has its name and nothing else."""
    path.write_bytes(b"")


def half(path: Path) -> None:
    """The second half never came to the disk."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeros(path: Path) -> None:
    """The file has its size and nothing else."""
    path.write_bytes(bytes(path.stat().st_size))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with a day for each commit."""
    tables = FactTables(tmp_path)
    tables.create()
    for number in range(COMMITS):
        day = DAY + timedelta(days=number)
        tables.replace_day(MEMBERS_TABLE, day, rows(day, "a"), epoch=1)
    return tmp_path / MEMBERS_TABLE


def days(table: Path) -> list[date]:
    """The days that somebody finds who has not looked yet."""
    return FactTables(table.parent).snapshot(MEMBERS_TABLE).days


def repair_log(table: Path) -> list[str]:
    """What is set aside."""
    return list(Folder(table.parent).mend(table.name))


def test_a_whole_log_is_left_alone(table: Path) -> None:
    """Nothing is wrong, nothing changes."""
    before = sorted(path.name for path in (table / LOG).iterdir())
    assert repair_log(table) == []
    assert sorted(path.name for path in (table / LOG).iterdir()) == before


@pytest.mark.parametrize("tear", [half, zeros])
def test_a_torn_entry_is_set_aside(table: Path, tear: Callable[[Path], None]) -> None:
    """The commit is as if it had never been; the next one takes its place."""
    all_days = days(table)
    entry = table / LOG / f"{COMMITS:020d}.json"
    tear(entry)
    (said,) = repair_log(table)
    assert said == f"{LOG}/{entry.name} is truncated"
    assert days(table) == all_days[:-1]
    FactTables(table.parent).replace_day(MEMBERS_TABLE, all_days[-1], rows(all_days[-1], "a"), epoch=1)
    assert days(table) == all_days
    assert repair_log(table) == []


def test_an_empty_entry_changes_nothing(table: Path) -> None:
    """It reads as a commit without actions: the table can be opened, without what was lost."""
    all_days = days(table)
    empty(table / LOG / f"{COMMITS:020d}.json")
    assert repair_log(table) == []
    assert days(table) == all_days[:-1]


@pytest.mark.extensive
@pytest.mark.parametrize("tear", [empty, half, zeros, Path.unlink])
def test_a_torn_checkpoint_is_done_without(table: Path, tear: Callable[[Path], None]) -> None:
    """The entries are all there; they are read from the checkpoint before."""
    all_days = days(table)
    tear(sorted((table / LOG).glob("*.checkpoint.parquet"))[-1])
    (said,) = repair_log(table)
    assert said.startswith(f"{LOG}/_last_checkpoint names a checkpoint that cannot be read")
    assert days(table) == all_days


def first_line(path: Path) -> None:
    """Only the first line came to the disk."""
    path.write_text(path.read_text().splitlines()[0] + "\n")


@pytest.mark.parametrize("tear", [empty, half, zeros, first_line])
def test_a_table_that_was_never_quite_made(tmp_path: Path, tear: Callable[[Path], None]) -> None:
    """Its first entry was torn: it is made again."""
    FactTables(tmp_path).create()
    table = tmp_path / MEMBERS_TABLE
    tear(table / LOG / f"{0:020d}.json")
    assert len(repair_log(table)) == 1
    assert Folder(tmp_path).newest_version(MEMBERS_TABLE) == -1
    FactTables(tmp_path).create()
    assert days(table) == []
