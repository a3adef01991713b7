"""A day of facts is replaced as a whole, in the transaction of the process that holds the lease."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from chargeback.errors import DamagedFacts, LeaseLost, StorageError
from chargeback.model.days import DayRange
from chargeback.model.usage import MEMBERS
from chargeback.store.control.catalogue import NewContent, files_as_of
from chargeback.store.control.lease import Lease, LeaseOwner, acquire
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, MEMBERS_TABLE, FactTables, read_day
from tests.support.facts import catalogue_of, commit_contents, remove_days, replace_day

DAY = date(2026, 1, 1)
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ONE_MINUTE = timedelta(minutes=1)


def rows(day: date, *identities: str) -> pa.Table:
    """Return members of a day."""
    return pa.table(
        {
            "date": pa.array([day] * len(identities), pa.date32()),
            "resource_id": pa.array(["lkc-1"] * len(identities), pa.string()),
            "identity_id": pa.array(identities, pa.string()),
            "relation": pa.array(["active"] * len(identities), pa.string()),
        },
        schema=MEMBERS,
    )


def lease_of(tables: FactTables) -> Lease:
    """Acquire the lease of a run."""
    return acquire(tables.control, LeaseOwner.this_process())


def identities(tables: FactTables, day: date = DAY) -> list[str]:
    """Return the stored identities of a day."""
    found: list[str] = read_day(tables, MEMBERS_TABLE, day)["identity_id"].to_pylist()
    return found


def test_a_table_never_written_is_empty(tables: FactTables) -> None:
    """Readers may start before the first run."""
    assert tables.snapshot(CHARGEBACKS_TABLE).files == ()


def test_a_day_is_replaced_whole(tables: FactTables) -> None:
    """The former rows are gone, other days stay, and a day is one file."""
    other = DAY + timedelta(days=1)
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "a", "b"))
    replace_day(tables, MEMBERS_TABLE, other, rows(other, "c"))
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "d"))
    snapshot = tables.snapshot(MEMBERS_TABLE)
    assert snapshot.days == [DAY, other]
    assert snapshot.rows == 2
    assert [file.rows for file in snapshot.within(DayRange(DAY, other))] == [1]
    assert read_day(tables, MEMBERS_TABLE, DAY).equals(rows(DAY, "d"))


def test_an_empty_day_replaces_a_full_one(tables: FactTables) -> None:
    """A day may become empty, and an empty day may be made empty again."""
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "a"))
    for _ in range(2):
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY))
        assert tables.snapshot(MEMBERS_TABLE).days == []
    assert read_day(tables, MEMBERS_TABLE, DAY).equals(rows(DAY))


def test_rows_of_another_day_are_refused(tables: FactTables) -> None:
    """A row outside the day is an error, and nothing is written."""
    with pytest.raises(StorageError, match="members"):
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY + timedelta(days=1), "a"))
    assert tables.snapshot(MEMBERS_TABLE).files == ()
    assert not list(tables.place.files())


def test_whoever_lost_the_lease_writes_nothing(tables: FactTables) -> None:
    """Once a successor has the lease, files of the former holder are not committed, although they exist."""
    lease = lease_of(tables)
    content = tables.prepare_day(MEMBERS_TABLE, DAY, rows(DAY, "old"))
    lease.release()
    successor = lease_of(tables)
    with pytest.raises(LeaseLost), tables.commit(lease, lambda: NOW) as (connection, at):
        tables.replace(connection, [content], at)
    assert tables.snapshot(MEMBERS_TABLE).files == ()
    with tables.commit(successor, lambda: NOW) as (connection, at):
        tables.replace(connection, [content], at)
    assert identities(tables) == ["old"]


def test_a_transaction_that_fails_changed_nothing(tables: FactTables) -> None:
    """Neither the catalogue nor its version changes."""
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "a"))
    before, lease = tables.snapshot(MEMBERS_TABLE), lease_of(tables)

    def fail() -> None:
        with tables.commit(lease, lambda: NOW) as (connection, at):
            tables.replace(connection, [tables.prepare_day(MEMBERS_TABLE, DAY, rows(DAY, "b"))], at)
            raise StorageError("no space left")

    with pytest.raises(StorageError, match="no space left"):
        fail()
    assert tables.snapshot(MEMBERS_TABLE) == before
    assert identities(tables) == ["a"]


def test_a_run_reads_the_catalogue_once(tables: FactTables) -> None:
    """While a run holds the lease no other process writes, so it reads the catalogue once and sees its own writes."""
    reader, lease = FactTables(tables.place, tables.control), lease_of(tables)
    next_day = DAY + timedelta(days=1)
    with tables.alone():
        assert tables.snapshot(MEMBERS_TABLE).days == []
        replace_day(reader, MEMBERS_TABLE, DAY, rows(DAY, "another"))
        assert tables.snapshot(MEMBERS_TABLE).days == []
        with tables.commit(lease, lambda: NOW) as (connection, at):
            tables.replace(connection, [tables.prepare_day(MEMBERS_TABLE, next_day, rows(next_day, "a"))], at)
        assert tables.snapshot(MEMBERS_TABLE).days == [DAY, next_day]
    assert reader.snapshot(MEMBERS_TABLE).days == [DAY, next_day]


def test_readers_see_whole_days_while_days_are_replaced(tables: FactTables) -> None:
    """A reader in the same or another process sees the old day or the new one, never a mix."""
    reader = FactTables(tables.place, tables.control)

    def replace_often() -> None:
        for number in range(8 if tables.place.options else 20):
            replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, *[str(number)] * 50))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_often)
        while not writing.done():
            found = identities(reader)
            assert len(set(found)) <= 1
            assert len(found) in {0, 50}
        writing.result()


def test_a_missing_file_is_named(tables: FactTables) -> None:
    """A facts file that was deleted from outside raises an error with its name."""
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "a"))
    tables.place.delete(tables.snapshot(MEMBERS_TABLE).files[0].path)
    with pytest.raises(DamagedFacts, match=r"the file members/date=2026-01-01/\S+ is missing"):
        read_day(tables, MEMBERS_TABLE, DAY)


def test_several_days_are_one_change(tables: FactTables) -> None:
    """Full and empty days are replaced together; other days stay."""
    days = [DAY + timedelta(days=offset) for offset in range(4)]
    commit_contents(tables, [tables.prepare_day(MEMBERS_TABLE, day, rows(day, "old")) for day in days])
    before = tables.snapshot(MEMBERS_TABLE).version
    new = {days[0]: rows(days[0], "a", "b"), days[1]: rows(days[1]), days[3]: rows(days[3], "c")}
    commit_contents(tables, [tables.prepare_day(MEMBERS_TABLE, day, each) for day, each in new.items()])
    assert [identities(tables, day) for day in days] == [["a", "b"], [], ["old"], ["c"]]
    assert tables.snapshot(MEMBERS_TABLE).version > before


def test_an_earlier_instant_is_another_choice_of_files(tables: FactTables) -> None:
    """Each content is valid from its own instant until that of the next."""
    instants = [NOW + number * ONE_MINUTE for number in range(3)]
    for at, name in zip(instants, ("a", "b", "a"), strict=True):
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, name), at)
    with tables.control.read() as connection:
        assert files_as_of(connection, NOW - ONE_MINUTE) == []
        (first,), (second,), (third,) = (files_as_of(connection, at) for at in instants)
        assert files_as_of(connection, NOW + timedelta(seconds=59)) == [first]
    assert (first.until, second.until, third.until) == (instants[1], instants[2], None)


def test_a_clock_that_was_set_back_changes_no_order(tables: FactTables) -> None:
    """The next change follows the last one immediately, so that the data as of an earlier instant stays the same."""
    for at, name in ((NOW, "a"), (NOW - ONE_MINUTE, "b"), (NOW - 2 * ONE_MINUTE, "c")):
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, name), at)
    step = timedelta(microseconds=1)
    assert [each.since for each in catalogue_of(tables)] == [NOW, NOW + step, NOW + 2 * step]


def test_the_same_content_takes_the_place_of_a_damaged_file(tables: FactTables) -> None:
    """The new file replaces the damaged one from the beginning of its content."""
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "a"), NOW)
    content, lease = tables.prepare_day(MEMBERS_TABLE, DAY, rows(DAY, "a")), lease_of(tables)
    with tables.commit(lease, lambda: NOW + ONE_MINUTE) as (connection, at):
        tables.replace(connection, [content], at)
    (named,) = catalogue_of(tables)
    assert content.file is not None
    assert (named.path, named.since, named.until) == (content.file.path, NOW, None)


def test_removed_days_are_given_up(tables: FactTables) -> None:
    """Every day before a given one is removed with its earlier contents; later days stay."""
    days = [DAY + timedelta(days=offset) for offset in range(3)]
    for day in days:
        replace_day(tables, MEMBERS_TABLE, day, rows(day, "a"), NOW)
        replace_day(tables, MEMBERS_TABLE, day, rows(day, "b"), NOW + ONE_MINUTE)
    remove_days(tables, days[2], MEMBERS_TABLE, at=NOW + 2 * ONE_MINUTE)
    assert tables.snapshot(MEMBERS_TABLE).days == days[2:]
    gone = {each.day for each in catalogue_of(tables) if each.gone_at is not None}
    assert gone == set(days[:2])


def test_an_unwritten_content_has_no_file(tables: FactTables) -> None:
    """A day without rows has no file."""
    assert tables.prepare_day(MEMBERS_TABLE, DAY, rows(DAY)) == NewContent(MEMBERS_TABLE, DAY, None)
