"""The audit log: what callers changed, what it was before, and what they were refused.

A change is recorded in its own transaction: neither is there without the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    RowMapping,
    Text,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
)

from chargeback.model.days import Clock, utc_now
from chargeback.store.control.given import relation
from chargeback.store.control.schema import Instant, audit

#: What can be recorded.
TAG_CREATED: Final = "tag.created"
TAG_CHANGED: Final = "tag.changed"
TAG_REMOVED: Final = "tag.removed"
VIEW_CREATED: Final = "view.created"
VIEW_CHANGED: Final = "view.changed"
VIEW_REMOVED: Final = "view.removed"
NOTE_CREATED: Final = "note.created"
NOTE_CHANGED: Final = "note.changed"
NOTE_REMOVED: Final = "note.removed"
CATEGORY_CREATED: Final = "category.created"
CATEGORY_CHANGED: Final = "category.changed"
CATEGORY_REMOVED: Final = "category.removed"
BUDGET_CREATED: Final = "budget.created"
BUDGET_CHANGED: Final = "budget.changed"
BUDGET_REMOVED: Final = "budget.removed"
FINDING_SNOOZED: Final = "finding.snoozed"
FINDING_WOKEN: Final = "finding.woken"
STATEMENT_ACKNOWLEDGED: Final = "statement.acknowledged"
STATEMENT_DISPUTED: Final = "statement.disputed"
ANOMALY_MARKED: Final = "anomaly.marked"
ANOMALY_UNMARKED: Final = "anomaly.unmarked"
TOKEN_CREATED: Final = "token.created"  # noqa: S105 - not a secret
TOKEN_REVOKED: Final = "token.revoked"  # noqa: S105 - not a secret
PERIOD_CLOSED: Final = "period.closed"
PERIOD_REOPENED: Final = "period.reopened"
PERIOD_SEALED: Final = "period.sealed"
PERIOD_REQUESTED: Final = "period.requested"
PERIOD_RESTATED: Final = "period.restated"
ADJUSTMENT_ADDED: Final = "adjustment.added"
ADJUSTMENT_REMOVED: Final = "adjustment.removed"
INVOICE_SAVED: Final = "invoice.saved"
INVOICE_REMOVED: Final = "invoice.removed"
POLICIES_APPLIED: Final = "policies.applied"
POLICIES_WITHDRAWN: Final = "policies.withdrawn"
NOTIFICATIONS_RETRIED: Final = "notifications.retried"
RUN_REQUESTED: Final = "run.requested"
RUN_CANCELLED: Final = "run.cancelled"
REQUEST_REFUSED: Final = "request.refused"
KINDS: Final = (
    *(TAG_CREATED, TAG_CHANGED, TAG_REMOVED),
    *(VIEW_CREATED, VIEW_CHANGED, VIEW_REMOVED),
    *(NOTE_CREATED, NOTE_CHANGED, NOTE_REMOVED),
    *(CATEGORY_CREATED, CATEGORY_CHANGED, CATEGORY_REMOVED),
    *(BUDGET_CREATED, BUDGET_CHANGED, BUDGET_REMOVED),
    *(FINDING_SNOOZED, FINDING_WOKEN),
    *(ANOMALY_MARKED, ANOMALY_UNMARKED),
    *(STATEMENT_ACKNOWLEDGED, STATEMENT_DISPUTED),
    *(PERIOD_CLOSED, PERIOD_REOPENED, PERIOD_SEALED, PERIOD_REQUESTED, PERIOD_RESTATED),
    *(ADJUSTMENT_ADDED, ADJUSTMENT_REMOVED),
    *(INVOICE_SAVED, INVOICE_REMOVED),
    *(TOKEN_CREATED, TOKEN_REVOKED),
    *(POLICIES_APPLIED, POLICIES_WITHDRAWN),
    *(NOTIFICATIONS_RETRIED, RUN_REQUESTED, RUN_CANCELLED, REQUEST_REFUSED),
)

#: The actor of a change without a named caller: an unauthenticated caller of the API, or a user of the command line.
API: Final = "api"
COMMAND_LINE: Final = "command line"

#: How long entries are kept.
KEPT: Final = timedelta(days=400)

_MAX_TARGET_LENGTH: Final = 2000
_GIVEN: Final = ("what", "target", "before", "after")
_TYPES: Final = {"before": JSON(), "after": JSON()}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change, or one refusal: its kind, what it is about, and the values before and after it."""

    what: str
    target: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are meant: of one kind, of one caller, from ``start`` on, before ``end``; None means all."""

    what: str | None = None
    who: str | None = None
    start: datetime | None = None
    end: datetime | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """The filter as SQL."""
        return [
            *([] if self.what is None else [audit.c.what == self.what]),
            *([] if self.who is None else [audit.c.who == self.who]),
            *([] if self.start is None else [audit.c.at >= self.start]),
            *([] if self.end is None else [audit.c.at < self.end]),
        ]


def record(connection: Connection, who: str, entries: Iterable[AuditEntry], clock: Clock = utc_now) -> None:
    """Add entries to the log, in the transaction of the changes that they are about."""
    rows = [
        [entry.what, entry.target[:_MAX_TARGET_LENGTH], _json(entry.before), _json(entry.after)] for entry in entries
    ]
    if not rows:
        return
    given_rows = relation(connection, rows, _GIVEN, _TYPES)
    found = select(literal(clock(), Instant), literal(who, Text), *(given_rows.c[name] for name in _GIVEN))
    connection.execute(insert(audit).from_select(("at", "who", *_GIVEN), found))


def _json(values: Mapping[str, Any] | None) -> str | None:
    return None if values is None else json.dumps(dict(values))


def audit_entries(
    connection: Connection, wanted: AuditFilter, *, offset: int, limit: int
) -> tuple[list[RowMapping], int]:
    """Return one page of the log, the newest first, as (rows, number of rows in all)."""
    conditions = wanted.conditions
    count = connection.execute(select(func.count()).select_from(audit).where(*conditions)).scalar_one()
    if offset >= count:
        return [], count
    query = select(audit).where(*conditions).order_by(audit.c.at.desc(), audit.c.id.desc())
    return list(connection.execute(query.offset(offset).limit(limit)).mappings()), count


def has_expired(connection: Connection, now: datetime) -> bool:
    """Return whether there are entries that :func:`delete_expired` would delete."""
    return bool(connection.execute(select(exists().where(audit.c.at < now - KEPT))).scalar())


def delete_expired(connection: Connection, now: datetime) -> None:
    """Delete the entries that are older than :data:`KEPT`."""
    connection.execute(delete(audit).where(audit.c.at < now - KEPT))
