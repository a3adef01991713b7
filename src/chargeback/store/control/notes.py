"""Notes: remarks on days, for the readers of their costs.

Every change is recorded in the audit log, as made by ``who``. A note has the scope of the caller who wrote it, by its
digest: with a ``scope``, the notes of others do not exist; without one (None), all notes do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, true, update

from chargeback.model.days import DayRange, utc_now
from chargeback.model.edits import edit_text, timed_etag
from chargeback.store.control.audit import API, NOTE_CHANGED, NOTE_CREATED, NOTE_REMOVED, AuditEntry, record
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.schema import notes


@dataclass(frozen=True)
class NoteWrite:
    """A note to write: its first and its last day, and its text."""

    start_date: date
    end_date: date
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return it as the audit log shows it."""
        return {"start_date": f"{self.start_date}", "end_date": f"{self.end_date}", "text": self.text}


@dataclass(frozen=True)
class StoredNote(NoteWrite):
    """A stored note: who wrote it first and last, and when. ``version`` is 1 for a new one."""

    id: int
    version: int
    created_by: str
    created_at: datetime
    changed_by: str
    changed_at: datetime

    @property
    def write(self) -> NoteWrite:
        """What was written."""
        return NoteWrite(self.start_date, self.end_date, self.text)

    @property
    def is_removal(self) -> bool:
        """Whether this version removed the note: of a removed note nothing is stored."""
        return False

    @property
    def etag(self) -> str:
        """The strong ETag of the version."""
        return timed_etag(self.version, self.changed_at)

    @property
    def last_edit(self) -> str:
        """Return who wrote it last, and when, as a sentence without its full stop."""
        return edit_text(self, self.changed_by, f"the note {self.id}", self.changed_at)


_STORED = [notes.c[name] for name in StoredNote.__dataclass_fields__]


def list_notes(connection: Connection, days: DayRange, scope: str | None = None) -> list[StoredNote]:
    """Return the notes on any of some days, by their first day."""
    query = select(*_STORED).where(_visible(scope), notes.c.start_date < days.end, notes.c.end_date >= days.start)
    rows = connection.execute(query.order_by(notes.c.start_date, notes.c.id))
    return [StoredNote(**row._mapping) for row in rows]


def lock_notes(connection: Connection, scope: str | None = None) -> int:
    """Return how many notes there are; until the transaction ends, no other transaction changes any."""
    lock_tenant(connection)
    return connection.execute(select(func.count()).select_from(notes).where(_visible(scope))).scalar_one()


def find_note(connection: Connection, note_id: int, scope: str | None = None) -> StoredNote | None:
    """Return a note; None if there is none with that id."""
    row = connection.execute(select(*_STORED).where(notes.c.id == note_id, _visible(scope))).first()
    return None if row is None else StoredNote(**row._mapping)


def create_note(
    connection: Connection, new: NoteWrite, created_by: str, scope: str | None = None, *, who: str = API
) -> StoredNote:
    """Create a note and return it."""
    now = utc_now()
    author = {"created_by": created_by, "created_at": now, "changed_by": created_by, "changed_at": now}
    values = {**asdict(new), **author, "version": 1, "scope": scope}
    row = connection.execute(insert(notes).values(values).returning(*_STORED)).one()
    record(connection, who, [AuditEntry(NOTE_CREATED, f"note/{row.id}", None, new.as_json())])
    return StoredNote(**row._mapping)


def change_note(connection: Connection, before: StoredNote, new: NoteWrite, *, who: str = API) -> StoredNote:
    """Replace a note of a locked tenant, and return the new version; what is the same already stays as it is."""
    if new == before.write:
        return before
    values = {**asdict(new), "version": before.version + 1, "changed_by": who, "changed_at": utc_now()}
    statement = update(notes).where(notes.c.id == before.id).values(values).returning(*_STORED)
    row = connection.execute(statement).one()
    entry = AuditEntry(NOTE_CHANGED, f"note/{before.id}", before.as_json(), new.as_json())
    record(connection, who, [entry])
    return StoredNote(**row._mapping)


def remove_note(connection: Connection, before: StoredNote, *, who: str = API) -> None:
    """Remove a note."""
    connection.execute(delete(notes).where(notes.c.id == before.id))
    record(connection, who, [AuditEntry(NOTE_REMOVED, f"note/{before.id}", before.as_json(), None)])


def _visible(scope: str | None) -> ColumnElement[bool]:
    return true() if scope is None else notes.c.scope == scope
