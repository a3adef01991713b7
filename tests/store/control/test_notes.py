"""Notes are written, changed and removed, each in its scope, on both databases."""

from __future__ import annotations

from datetime import date

from chargeback.model.days import DayRange
from chargeback.store.control import notes
from chargeback.store.control.audit import AuditFilter, audit_entries
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.notes import NoteWrite

DAYS = [date(2026, 1, day) for day in range(1, 6)]
ONE = NoteWrite(DAYS[1], DAYS[2], "Load test of search")
ALL = DayRange(DAYS[0], DAYS[-1])


def test_the_life_of_a_note(database: ControlDatabase) -> None:
    """A note is written, changed without losing its author, and removed; the audit log has each change only."""
    with database.write() as connection:
        first = notes.create_note(connection, ONE, "ann", who="api")
        assert (first.version, first.created_by, first.changed_by) == (1, "ann", "ann")
        assert first.created_at == first.changed_at
        assert notes.change_note(connection, first, ONE, who="bob") == first
        changed = notes.change_note(connection, first, NoteWrite(DAYS[1], DAYS[1], "Ünïcode 🚀"), who="bob")
        assert (changed.version, changed.created_by, changed.changed_by) == (2, "ann", "bob")
        assert (changed.id, changed.created_at) == (first.id, first.created_at)
        assert changed.etag != first.etag
        assert notes.find_note(connection, first.id) == changed
        assert notes.lock_notes(connection) == 1
        notes.remove_note(connection, changed, who="eve")
        assert notes.find_note(connection, first.id) is None
        rows, _ = audit_entries(connection, AuditFilter(), offset=0, limit=9)
        after = changed.as_json()
        assert [(row["what"], row["who"], row["before"], row["after"]) for row in rows] == [
            ("note.removed", "eve", after, None),
            ("note.changed", "bob", ONE.as_json(), after),
            ("note.created", "api", None, ONE.as_json()),
        ]
        assert {row["target"] for row in rows} == {f"note/{first.id}"}


def test_notes_on_days(database: ControlDatabase) -> None:
    """A note is on all days from its first to its last; lists are ordered by the first day."""
    with database.write() as connection:
        later = notes.create_note(connection, NoteWrite(DAYS[3], DAYS[3], "Later"), "ann")
        first = notes.create_note(connection, ONE, "ann")
        assert notes.list_notes(connection, ALL) == [first, later]
        found = [bool(notes.list_notes(connection, DayRange.of_day(day))) for day in DAYS]
        assert found == [False, True, True, True, False]


def test_notes_of_a_scope(database: ControlDatabase) -> None:
    """With a scope only its own notes are listed; without one, all are."""
    with database.write() as connection:
        whole = notes.create_note(connection, ONE, "ann")
        mine = notes.create_note(connection, ONE, "bob", "a" * 32)
        theirs = notes.create_note(connection, ONE, "eve", "b" * 32)
        assert notes.list_notes(connection, ALL) == [whole, mine, theirs]
        assert notes.list_notes(connection, ALL, "a" * 32) == [mine]
        assert (notes.lock_notes(connection), notes.lock_notes(connection, "a" * 32)) == (3, 1)
        assert [notes.find_note(connection, each.id, "a" * 32) for each in (whole, mine, theirs)] == [None, mine, None]


def test_an_id_is_not_given_twice(database: ControlDatabase) -> None:
    """The id of a removed note is not reused."""
    with database.write() as connection:
        last = notes.create_note(connection, ONE, "ann")
        notes.remove_note(connection, last)
        assert notes.create_note(connection, ONE, "ann").id > last.id
