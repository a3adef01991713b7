"""The tables for other engines: the contents of the catalogue, in logs of Delta Lake."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from chargeback.store.control.catalogue import give_up_history
from chargeback.store.facts.published import files_in_log, publish, shorten_logs
from chargeback.store.facts.tables import (
    CHARGEBACKS_TABLE,
    DIMENSIONS_TABLE,
    HISTORY_TABLES,
    MEMBERS_TABLE,
    SCHEMAS,
    FactTables,
    read_day,
)
from tests.store.facts.conftest import on_disk
from tests.store.facts.test_tables import DAY, NOW, ONE_MINUTE, rows
from tests.support.facts import Share, catalogue_of, remove_days, replace_day, write_shares

NEXT = DAY + timedelta(days=1)
#: Two revisions of the first day.
REVISIONS = {MEMBERS_TABLE: {DAY: [NOW, NOW + ONE_MINUTE]}}


def published(tables: FactTables, *, from_scratch: bool = False) -> int:
    """Publish; return the number of changed tables."""
    return publish(tables.place, catalogue_of(tables), REVISIONS, from_scratch=from_scratch)


def logged(tables: FactTables, name: str) -> dict[str, tuple[date | None, int, int | None]]:
    """Return the files of a log: day, rows and revision by path."""
    return {path: (day, rows, revision) for path, day, rows, _, revision, _ in files_in_log(tables.place, name)}


def test_what_is_present_is_published(tables: FactTables) -> None:
    """Every table is published, including empty ones; a second time there is nothing to do."""
    write_shares(tables, [Share(DAY, "sa-1", "1"), Share(NEXT, "sa-2", "1")])
    assert published(tables) == 2
    assert published(tables) == 0
    for name in SCHEMAS:
        present = {file.path.removeprefix(f"{tables.root}/"): file for file in tables.snapshot(name).files}
        assert logged(tables, name) == {path: (file.day, file.rows, None) for path, file in present.items()}
        assert not list(tables.place.files(HISTORY_TABLES.get(name, "none")))


def test_what_days_had_earlier_is_published_apart(tables: FactTables) -> None:
    """Earlier contents have a separate table, with revision and the same bytes; once given up, they leave its log."""
    for at, name in ((NOW, "a"), (NOW + ONE_MINUTE, "b"), (NOW + 2 * ONE_MINUTE, "c")):
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, name), at)
    published(tables)
    history = logged(tables, HISTORY_TABLES[MEMBERS_TABLE])
    first, second, third = catalogue_of(tables)
    assert {path.rpartition("/")[2]: each for path, each in history.items()} == {
        first.name: (DAY, 1, 1),
        second.name: (DAY, 1, 2),
    }
    assert list(logged(tables, MEMBERS_TABLE)) == [third.path]
    for path in history:
        same = next(each for each in (first, second) if path.endswith(each.name))
        assert tables.place.read(path) == tables.place.read(same.path)
    with tables.control.write() as connection:
        give_up_history(connection, NEXT, NOW)
    assert published(tables) == 1
    assert logged(tables, HISTORY_TABLES[MEMBERS_TABLE]) == {}
    assert list(logged(tables, MEMBERS_TABLE)) == [third.path]


def test_removed_days_leave_the_log(tables: FactTables) -> None:
    """Removed days leave the log, also if no day is left."""
    write_shares(tables, [Share(DAY, "sa-1", "1"), Share(NEXT, "sa-2", "1")])
    published(tables)
    for before, left in ((NEXT, [NEXT]), (NEXT + timedelta(days=1), [])):
        remove_days(tables, before, CHARGEBACKS_TABLE)
        published(tables)
        assert [day for day, *_ in logged(tables, CHARGEBACKS_TABLE).values()] == left
    assert len(logged(tables, DIMENSIONS_TABLE)) == 1


@pytest.mark.parametrize("damage", [b"", b"{", bytes(500)])
def test_a_log_that_cannot_be_read_is_written_anew(tables: FactTables, damage: bytes) -> None:
    """An unreadable log is written again from the catalogue."""
    write_shares(tables, [Share(DAY, "sa-1", "1")])
    published(tables)
    before = logged(tables, CHARGEBACKS_TABLE)
    for found in list(tables.place.files(f"{CHARGEBACKS_TABLE}/_delta_log")):
        tables.place.put(found.path, damage)
    assert published(tables) == 1
    assert logged(tables, CHARGEBACKS_TABLE) == before


def test_from_scratch(tables: FactTables) -> None:
    """Everything is written again, with the same content."""
    write_shares(tables, [Share(DAY, "sa-1", "1")])
    published(tables)
    before = logged(tables, CHARGEBACKS_TABLE)
    assert published(tables, from_scratch=True) == 2
    assert logged(tables, CHARGEBACKS_TABLE) == before


def test_logs_stay_short(tables: FactTables) -> None:
    """A checkpoint is written once for new entries."""
    write_shares(tables, [Share(DAY, "sa-1", "1")])
    published(tables)
    for _ in range(2):
        shorten_logs(tables.place)
        checkpoints = [
            found.path
            for found in tables.place.files(f"{CHARGEBACKS_TABLE}/_delta_log")
            if found.path.endswith(".checkpoint.parquet")
        ]
        assert len(checkpoints) == 1
    assert len(logged(tables, CHARGEBACKS_TABLE)) == 1


@on_disk
def test_another_engine_reads_history_as_a_table(tables: FactTables) -> None:
    """History can be queried by day and revision."""
    for at, name in ((NOW, "a"), (NOW + ONE_MINUTE, "b")):
        replace_day(tables, MEMBERS_TABLE, DAY, rows(DAY, name), at)
    published(tables)
    query = QueryBuilder().register("past", DeltaTable(tables.root / HISTORY_TABLES[MEMBERS_TABLE]))
    found = pa.table(query.execute("SELECT date, revision, identity_id FROM past")).to_pylist()
    assert [(str(row["date"]), row["revision"], row["identity_id"]) for row in found] == [(str(DAY), 1, "a")]
    assert read_day(tables, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["b"]
