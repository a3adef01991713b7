"""Replies of recipients to their statements, which acknowledge or dispute them.

Replies are never changed or removed. A reply belongs to the content that the statement had: the last one to that
content counts, and none to another. Every reply is recorded in the audit log, as
made by ``who``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import Connection, func, insert, select

from chargeback.model.days import render_instant, utc_now
from chargeback.store.control.audit import API, STATEMENT_ACKNOWLEDGED, STATEMENT_DISPUTED, AuditEntry, record
from chargeback.store.control.events import STATEMENT_DISPUTED as TOLD
from chargeback.store.control.events import Event, add_events
from chargeback.store.control.schema import statement_replies

ACKNOWLEDGED: Final = "acknowledged"
DISPUTED: Final = "disputed"
_RECORDED: Final = {ACKNOWLEDGED: STATEMENT_ACKNOWLEDGED, DISPUTED: STATEMENT_DISPUTED}


@dataclass(frozen=True, slots=True)
class StatementKey:
    """A statement with its content: its number, month (``YYYY-MM``), what statements are made by, value, revision, and
    the ``digest`` of the content."""

    number: str
    period: str
    grouping: str
    value: str
    revision: int
    digest: str


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """What a recipient said of a statement, with a note; ``data_through`` is the last calculated day that the statement
    had then, and ``digest`` that of its content: None if an earlier version recorded the reply."""

    number: str
    revision: int
    digest: str | None
    verdict: str
    note: str
    data_through: date | None
    created_by: str
    created_at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return it as the API and the audit log show it."""
        return {
            "number": self.number,
            "revision": self.revision,
            "digest": self.digest,
            "verdict": self.verdict,
            "note": self.note,
            "data_through": None if self.data_through is None else self.data_through.isoformat(),
            "created_by": self.created_by,
            "created_at": render_instant(self.created_at),
        }


def read_replies(connection: Connection, period: str, grouping: str) -> dict[str, list[RecordedReply]]:
    """Return the replies to the statements of a month by one grouping, by value; the first come first."""
    its = statement_replies.c
    said = (its.verdict, its.note, its.data_through, its.created_by, its.created_at)
    query = (
        select(its.value, its.number, its.revision, its.digest, *said)
        .where(its.period == period, its.grouping == grouping)
        .order_by(its.id)
    )
    found: dict[str, list[RecordedReply]] = {}
    for value, *rest in connection.execute(query):
        found.setdefault(value, []).append(RecordedReply(*rest))
    return found


def last_reply(connection: Connection, period: str, grouping: str) -> int:
    """Return a number that grows with each reply to statements of a month by one grouping; 0 without any."""
    its = statement_replies.c
    query = select(func.coalesce(func.max(its.id), 0)).where(its.period == period, its.grouping == grouping)
    return int(connection.execute(query).scalar_one())


def count_replies(connection: Connection, period: str, grouping: str, value: str) -> int:
    """Return how many replies the statement of a value of a month has, to all of its contents."""
    its = statement_replies.c
    query = select(func.count()).where(its.period == period, its.grouping == grouping, its.value == value)
    return int(connection.execute(query).scalar_one())


def add_reply(
    connection: Connection,
    key: StatementKey,
    verdict: str,
    note: str,
    through: date | None,
    author: str,
    *,
    who: str = API,
) -> RecordedReply:
    """Record the reply to a statement, :data:`ACKNOWLEDGED` or :data:`DISPUTED`, and return it."""
    reply = RecordedReply(key.number, key.revision, key.digest, verdict, note, through, author, utc_now())
    values = {
        "number": key.number,
        "period": key.period,
        "grouping": key.grouping,
        "value": key.value,
        "revision": key.revision,
        "digest": key.digest,
        "verdict": verdict,
        "note": note,
        "data_through": through,
        "created_by": author,
        "created_at": reply.created_at,
    }
    connection.execute(insert(statement_replies).values(**values))
    record(connection, who, [AuditEntry(_RECORDED[verdict], f"statement/{key.number}", None, reply.as_json())])
    if verdict == DISPUTED:
        body = {"note": note, "by": author, "period_id": key.period, "value": key.value}
        once = f"disputed {key.number} {render_instant(reply.created_at)}"
        event = Event(TOLD, f"statement/{key.number}", body, once)
        add_events(connection, [event], reply.created_at)
    return reply
