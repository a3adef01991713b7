"""The outbox: what has happened to a tenant and may be reported.

An event is recorded in the transaction that makes it happen, so that neither is there without the other. Its key says
what it is: the same thing is recorded once. Readers go on behind the last ``id`` that they have seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, delete, exists, insert, select

from chargeback.store.control.audit import KEPT
from chargeback.store.control.schema import deliveries, events

PERIOD_READY: Final = "period.ready"
PERIOD_CLOSED: Final = "period.closed"
PERIOD_REOPENED: Final = "period.reopened"
PERIOD_SEALED: Final = "period.sealed"
CORRECTION_POSTED: Final = "correction.posted"
BUDGET_CROSSED: Final = "budget.crossed"
BUDGET_CLEARED: Final = "budget.cleared"
BUDGET_LATE: Final = "budget.late"
SHADOW_READY: Final = "shadow.ready"
SHADOW_ENDED: Final = "shadow.ended"
ANOMALY_OPENED: Final = "anomaly.opened"
ANOMALY_GREW: Final = "anomaly.grew"
ANOMALY_RESOLVED: Final = "anomaly.resolved"
ANOMALY_WITHDRAWN: Final = "anomaly.withdrawn"
SINK_DEAD: Final = "sink.dead"
STATEMENT_ISSUED: Final = "statement.issued"
STATEMENT_DISPUTED: Final = "statement.disputed"
INVOICE_DIFFERS: Final = "invoice.differs"
RUN_FAILED: Final = "run.failed"
TENANT_SUSPENDED: Final = "tenant.suspended"
CONTRACT_PACE: Final = "contract.pace"
CONTRACT_EXHAUSTED: Final = "contract.exhausted"
CONTRACT_ENDING: Final = "contract.ending"
DIGEST_WEEKLY: Final = "digest.weekly"
#: In the body of an event: the names of the sinks that get it; left out or empty for all that accept its kind.
NOTIFY: Final = "notify"
#: In the body of an event: the names of the sinks with a scope that it lies within, or that there are no numbers in it.
OWNERS: Final = "owners"
EVERY_OWNER: Final = "*"
#: In the body of an event: the value of a cost category that all of it belongs to, by the category.
BELONGS_TO: Final = "belongs_to"


@dataclass(frozen=True, slots=True)
class Event:
    """What has happened (``kind``) to what (``subject``), with what there is to say about it, and the key that makes it
    one."""

    kind: str
    subject: str
    body: Mapping[str, Any]
    dedupe_key: str


def add_events(connection: Connection, found: Iterable[Event], at: datetime) -> None:
    """Record events that are new."""
    for each in found:
        if connection.execute(select(exists().where(events.c.dedupe_key == each.dedupe_key))).scalar():
            continue
        values = {"at": at, "kind": each.kind, "subject": each.subject, "body": dict(each.body)}
        connection.execute(insert(events).values(**values, dedupe_key=each.dedupe_key))


def are_recorded(connection: Connection, keys: Collection[str]) -> set[str]:
    """Return the keys among these that events have."""
    query = select(events.c.dedupe_key).where(events.c.dedupe_key.in_(list(keys)))
    return set(connection.execute(query).scalars())


def read_events(connection: Connection, *, after: int, kind: str | None, limit: int) -> list[RowMapping]:
    """Return the first events behind a number, of a kind or of all, in order."""
    query = select(events.c.id, events.c.at, events.c.kind, events.c.subject, events.c.body)
    query = query.where(events.c.id > after).order_by(events.c.id).limit(limit)
    return list(connection.execute(query if kind is None else query.where(events.c.kind == kind)).mappings())


def has_expired(connection: Connection, now: datetime) -> bool:
    """Return whether there are events that :func:`delete_expired` would delete."""
    return bool(connection.execute(select(exists().where(events.c.at < now - KEPT))).scalar())


def delete_expired(connection: Connection, now: datetime) -> None:
    """Delete the events that are older than the audit log, and their deliveries."""
    connection.execute(delete(events).where(events.c.at < now - KEPT))
    connection.execute(delete(deliveries).where(deliveries.c.event_id.not_in(select(events.c.id))))
