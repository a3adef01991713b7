"""Notifications to sinks: each event once for each sink, until it has arrived or is given up.

An event becomes a delivery of every sink that accepts its kind; a new sink gets later events only. A process claims a
delivery before sending it: for the duration of an attempt, no other process sends it. A process that dies meanwhile
leaves it pending, so that every message is sent at least once, and a receiver recognises a repetition by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from sqlalchemy import Connection, CursorResult, delete, exists, func, insert, select, update

from chargeback.store.control.events import EVERY_OWNER, NOTIFY, OWNERS
from chargeback.store.control.schema import deliveries, events, sinks

PENDING: Final = "pending"
DELIVERED: Final = "delivered"
#: Given up: the receiver wants no more, or has not taken it for three days.
DEAD: Final = "dead"


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event (its ``id``, ``at``, ``kind``, ``subject``, ``body`` and ``dedupe_key``) that is to be sent to a sink,
    and how often that was tried."""

    sink: str
    event: Mapping[str, Any]
    attempts: int


@dataclass(frozen=True, slots=True)
class SinkState:
    """How many deliveries of a sink are in each state, when the oldest pending event happened, and the last error."""

    pending: int = 0
    delivered: int = 0
    dead: int = 0
    oldest_pending: datetime | None = None
    last_error: str | None = None


def has_news(connection: Connection, names: Collection[str]) -> bool:
    """Return whether :func:`add_deliveries` has something to do for sinks."""
    known = {row.name: row.cursor for row in connection.execute(select(sinks))}
    last = connection.execute(select(func.max(events.c.id))).scalar() or 0
    return any(known.get(name, -1) < last for name in names)


def is_for(body: Mapping[str, Any], name: str, *, is_owner: bool) -> bool:
    """Return whether an event is for a sink; an owner's sink has a scope, and gets only events within it."""
    is_its = not is_owner or not {name, EVERY_OWNER}.isdisjoint(body.get(OWNERS, ()))
    return is_its and name in (body.get(NOTIFY) or [name])


def add_deliveries(
    connection: Connection, name: str, accepts: Callable[[str], bool], now: datetime, *, is_owner: bool = False
) -> None:
    """Make deliveries of the events that a sink accepts and that are new to it, in a transaction in which no one else
    writes. No sink gets events about itself."""
    last = connection.execute(select(func.max(events.c.id))).scalar() or 0
    cursor = connection.execute(select(sinks.c.cursor).where(sinks.c.name == name)).scalar()
    if cursor is None:
        connection.execute(insert(sinks).values(name=name, cursor=last))
        return
    its = events.c
    new = connection.execute(select(its.id, its.kind, its.subject, its.body).where(its.id > cursor).order_by(its.id))
    for each in new.all():
        if is_for(each.body, name, is_owner=is_owner) and accepts(each.kind) and each.subject != subject_of(name):
            values = {"sink": name, "event_id": each.id, "subject": each.subject, "state": PENDING}
            connection.execute(insert(deliveries).values(**values, attempts=0, next_at=now))
    connection.execute(update(sinks).where(sinks.c.name == name).values(cursor=last))


def subject_of(name: str) -> str:
    """Return what events about a sink itself are about."""
    return f"sink/{name}"


def due_deliveries(connection: Connection, name: str, now: datetime, limit: int) -> list[Delivery]:
    """Return the first deliveries of a sink that are to be sent now. Of each subject that is the earliest one alone:
    its messages arrive in order."""
    earlier = deliveries.alias("earlier")
    is_behind = exists().where(
        earlier.c.sink == name,
        earlier.c.state == PENDING,
        earlier.c.subject == deliveries.c.subject,
        earlier.c.event_id < deliveries.c.event_id,
    )
    query = (
        select(events, deliveries.c.attempts)
        .join(deliveries, deliveries.c.event_id == events.c.id)
        .where(deliveries.c.sink == name, deliveries.c.state == PENDING, deliveries.c.next_at <= now, ~is_behind)
        .order_by(events.c.id)
        .limit(limit)
    )
    return [Delivery(name, dict(row), row["attempts"]) for row in connection.execute(query).mappings()]


def claim(connection: Connection, delivery: Delivery, until: datetime) -> bool:
    """Count an attempt, and keep others from making one until an instant; return False if another was faster."""
    changed = connection.execute(
        update(deliveries)
        .where(
            deliveries.c.sink == delivery.sink,
            deliveries.c.event_id == delivery.event["id"],
            deliveries.c.state == PENDING,
            deliveries.c.attempts == delivery.attempts,
        )
        .values(attempts=delivery.attempts + 1, next_at=until)
    )
    return cast(CursorResult[Any], changed).rowcount == 1


def finish(connection: Connection, delivery: Delivery, state: str, error: str | None, next_at: datetime) -> None:
    """Record what became of an attempt that was claimed; what has arrived stays so."""
    connection.execute(
        update(deliveries)
        .where(
            deliveries.c.sink == delivery.sink,
            deliveries.c.event_id == delivery.event["id"],
            deliveries.c.state != DELIVERED,
        )
        .values(state=state, last_error=error, next_at=next_at)
    )


def retry_dead(connection: Connection, name: str, now: datetime) -> int:
    """Let what was given up for a sink be tried again from the beginning; return how many messages that are."""
    changed = connection.execute(
        update(deliveries)
        .where(deliveries.c.sink == name, deliveries.c.state == DEAD)
        .values(state=PENDING, attempts=0, next_at=now)
    )
    return cast(CursorResult[Any], changed).rowcount


def oldest_pending(connection: Connection) -> dict[str, datetime]:
    """Return when the oldest pending event of each sink happened; sinks without one are left out."""
    waiting = (
        select(deliveries.c.sink, func.min(events.c.at).label("at"))
        .join(events, events.c.id == deliveries.c.event_id)
        .where(deliveries.c.state == PENDING)
        .group_by(deliveries.c.sink)
    )
    return {row.sink: row.at for row in connection.execute(waiting)}


def sink_states(connection: Connection) -> dict[str, SinkState]:
    """Return the states of all sinks that have deliveries."""
    counted: dict[str, dict[str, int]] = {}
    rows = select(deliveries.c.sink, deliveries.c.state, func.count()).group_by(deliveries.c.sink, deliveries.c.state)
    for name, state, count in connection.execute(rows):
        counted.setdefault(name, {})[state] = count
    oldest = oldest_pending(connection)
    failed = select(deliveries.c.sink, deliveries.c.last_error).where(deliveries.c.last_error.is_not(None))
    errors = {row.sink: row.last_error for row in connection.execute(failed.order_by(deliveries.c.event_id))}
    return {
        name: SinkState(**states, oldest_pending=oldest.get(name), last_error=errors.get(name))
        for name, states in counted.items()
    }


def forget_sinks(connection: Connection, names: Collection[str]) -> None:
    """Remove sinks that are not configured any more: a later one of the same name begins with its own first event."""
    connection.execute(delete(deliveries).where(deliveries.c.sink.not_in(names)))
    connection.execute(delete(sinks).where(sinks.c.name.not_in(names)))
