"""Files that no query can need are removed from the disk, and no others."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from chargeback.model.days import utc_now
from chargeback.store.control.catalogue import add, end_table, give_up_history, instant_of_change, move
from chargeback.store.facts.files import read_file
from chargeback.store.facts.places import Place
from chargeback.store.facts.published import publish
from chargeback.store.facts.tables import (
    CHARGEBACKS_TABLE,
    DIMENSIONS_TABLE,
    HISTORY_TABLES,
    MEMBERS_TABLE,
    FactTables,
    read_day,
)
from chargeback.store.facts.upkeep import (
    LEFTOVER_AGE,
    STAMP,
    CleanupStats,
    compacted_dimensions,
    record_upkeep,
    remove_unnamed,
    settled_history,
    upkeep_is_due,
)
from tests.store.facts.conftest import on_disk
from tests.store.facts.test_tables import rows
from tests.support.facts import Share, catalogue_of, days_from, remove_days, replace_day, write_shares

DAY = date(2026, 1, 1)
NEXT = DAY + timedelta(days=1)
LATER = LEFTOVER_AGE + timedelta(hours=1)


def age(path: Path) -> None:
    """Make a file or folder look as if it had not changed for more than a week."""
    os.utime(path, (time.time() - LATER.total_seconds(),) * 2)


def test_what_a_day_had_earlier_stays(tables: FactTables) -> None:
    """Files of earlier contents stay for queries as of an earlier instant."""
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "a"))
    listed = tables.snapshot(MEMBERS_TABLE).files
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "b"))
    assert remove_unnamed(tables, utc_now() + LATER) == CleanupStats()
    assert read_file(listed[0])["identity_id"].to_pylist() == ["a"]


def test_what_was_given_up_goes_a_week_later(tables: FactTables) -> None:
    """Files of removed history are deleted a week later, because running readers may need them; present files stay."""
    for name in "abc":
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, name))
    now = utc_now()
    with tables.control.write() as connection:
        assert give_up_history(connection, NEXT, now) == 2
    assert remove_unnamed(tables, now + LEFTOVER_AGE - timedelta(hours=1)) == CleanupStats()
    assert remove_unnamed(tables, now + LATER) == CleanupStats(files=2)
    assert remove_unnamed(tables, now + LATER) == CleanupStats()
    assert len(list(tables.place.files(MEMBERS_TABLE))) == 1
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["c"]


def test_files_of_killed_writers_go_when_they_are_old(tables: FactTables) -> None:
    """An unreferenced file may still be committed by its run, and is deleted once it is older than a week."""
    replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, "a"))
    tables.prepare_day(MEMBERS_TABLE, DAY, rows(DAY, "lost"))
    tables.place.put("members/_delta_log/00000000000000000009.json", b"{}")
    assert remove_unnamed(tables, utc_now()) == CleanupStats()
    assert remove_unnamed(tables, utc_now() + LATER) == CleanupStats(files=1)
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["a"]
    assert tables.place.read("members/_delta_log/00000000000000000009.json") == b"{}"


@on_disk
def test_empty_folders_of_days_go(tables: FactTables) -> None:
    """The folder of a removed day is deleted when it is old."""
    for day in (DAY, NEXT):
        replace_day(tables, MEMBERS_TABLE, day, rows(day, "a"))
    remove_days(tables, NEXT, MEMBERS_TABLE)
    assert remove_unnamed(tables, utc_now() + LATER) == CleanupStats(files=1)
    for folder in (tables.root / MEMBERS_TABLE).glob("date=*"):
        age(folder)
    assert remove_unnamed(tables, utc_now() + LATER) == CleanupStats(folders=1)
    assert [folder.name for folder in (tables.root / MEMBERS_TABLE).glob("date=*")] == [f"date={NEXT}"]


def test_upkeep_beside_a_writer(tables: FactTables) -> None:
    """While another process commits days, upkeep neither fails nor removes anything from the table."""
    count = 12 if tables.place.options else 60

    def replace_often() -> None:
        for number in range(count):
            day = DAY + timedelta(days=number % 3)
            replace_day(tables, MEMBERS_TABLE, day, rows(day, str(number)))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_often)
        while not writing.done():
            remove_unnamed(tables, utc_now())
        writing.result()
    found = [read_day(tables, MEMBERS_TABLE, DAY + timedelta(days=n))["identity_id"].to_pylist() for n in range(3)]
    assert found == [[str(count - 3)], [str(count - 2)], [str(count - 1)]]


def test_history_is_kept_once(tables: FactTables) -> None:
    """A week after it was superseded, a published file is kept only in its history table; without publishing it stays
    in place."""
    for name in "ab":
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, name))
    now = utc_now()
    assert settled_history(tables, now + LATER) == {}
    publish(tables.place, catalogue_of(tables), {}, from_scratch=False)
    assert settled_history(tables, now) == {}
    settled = settled_history(tables, now + LATER)
    with tables.control.write() as connection:
        move(connection, settled)
    assert remove_unnamed(tables, now + LATER) == CleanupStats(files=1)
    past, present = catalogue_of(tables)
    assert past.path.startswith(f"{HISTORY_TABLES[MEMBERS_TABLE]}/")
    assert read_file(tables.day_file(past))["identity_id"].to_pylist() == ["a"]
    assert read_file(tables.day_file(present))["identity_id"].to_pylist() == ["b"]
    assert publish(tables.place, catalogue_of(tables), {}, from_scratch=False) == 0


def test_tables_that_were_never_written_need_nothing(tables: FactTables) -> None:
    """Upkeep of unused storage does nothing."""
    assert remove_unnamed(tables, utc_now()) == CleanupStats()


def test_the_time_of_upkeep_is_noted(place: Place) -> None:
    """The time of the last upkeep is stored; a stamp that is unreadable or in the future counts as never."""
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert upkeep_is_due(place, now)
    record_upkeep(place, now)
    assert not upkeep_is_due(place, now)
    for stamp in ("yesterday", *((now + timedelta(hours=hours)).isoformat() for hours in (-25, 25))):
        place.put(STAMP, stamp.encode())
        assert upkeep_is_due(place, now)


def test_the_register_of_dimensions_becomes_one_file(tables: FactTables) -> None:
    """A register with many files becomes one file, without the dimensions of removed days."""
    days = days_from(DAY, 4)
    for number, day in enumerate(days):
        write_shares(tables, [Share(day, f"sa-{number}", "1.5"), Share(day, "sa-always", "1.5")])
    remove_days(tables, days[1], CHARGEBACKS_TABLE)
    assert compacted_dimensions(tables, most_files=4) is None
    register = compacted_dimensions(tables, most_files=3)
    assert register is not None
    with tables.control.write() as connection:
        at = instant_of_change(connection, utc_now())
        end_table(connection, DIMENSIONS_TABLE, at)
        add(connection, [(DIMENSIONS_TABLE, None, register)], at)
    (file,) = tables.snapshot(DIMENSIONS_TABLE).files
    found: pa.Table = read_file(file)
    assert set(found["identity_id"].to_pylist()) == {"sa-1", "sa-2", "sa-3", "sa-always"}
    assert found["dimension_id"].to_pylist() == sorted(found["dimension_id"].to_pylist())
