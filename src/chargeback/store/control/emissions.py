"""The results of each emitter by date, and the inventory of past days that emitters report."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from itertools import accumulate

from sqlalchemy import Connection, func, insert, select, update

from chargeback.model.days import ONE_DAY, start_of_day, utc_now
from chargeback.store.control.inventory_lists import EntityKind
from chargeback.store.control.schema import emissions


class EmissionState(StrEnum):
    """The result for a date. Failed dates are tried again in every run; skipped ones are excluded by the
    configuration."""

    EMITTED = "emitted"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Emission:
    """One row of the ``emissions`` table. ``tracking_date`` is the first day of the period that was emitted.

    ``version`` identifies the facts and the settings that were emitted; ``attempts`` counts the attempts for that
    version. ``error`` says, in a sentence, why it failed or was skipped.
    """

    emitter: str
    tracking_date: date
    state: str
    version: str
    attempts: int = 0
    error: str | None = None
    changed_at: datetime | None = None


def read_emissions(connection: Connection, emitter: str) -> dict[date, Emission]:
    """Return all rows of one emitter, by date."""
    query = select(emissions).where(emissions.c.emitter == emitter).order_by(emissions.c.tracking_date)
    return {row.tracking_date: Emission(**row._mapping) for row in connection.execute(query)}


def save_emission(connection: Connection, emission: Emission) -> None:
    """Write the row of one emitter and date; ``changed_at`` becomes now."""
    values = {
        "state": emission.state,
        "version": emission.version,
        "attempts": emission.attempts,
        "error": emission.error,
        "changed_at": utc_now(),
    }
    here = (emissions.c.emitter == emission.emitter) & (emissions.c.tracking_date == emission.tracking_date)
    if connection.execute(update(emissions).where(here).values(**values)).rowcount == 0:
        key = {"emitter": emission.emitter, "tracking_date": emission.tracking_date}
        connection.execute(insert(emissions).values(**key, **values))


def existing_on(
    connection: Connection, kind: EntityKind, dates: Sequence[date], among: Collection[str] | None = None
) -> dict[date, Mapping[str, int]]:
    """Return how many resources, or identities, existed at some moment of each day (``dates`` is ascending), by type;
    with ``among``, of these ids only."""
    created, deleted = kind.table.c.created_at, kind.table.c.deleted_at
    if among is not None:
        each = connection.execute(select(kind.id, kind.type, created, deleted))
        return count_alive(((name, since, until, 1) for id_, name, since, until in each if id_ in among), dates)
    grouped = select(kind.type, created, deleted, func.count()).group_by(kind.type, created, deleted)
    return count_alive(
        ((name, since, until, count) for name, since, until, count in connection.execute(grouped)), dates
    )


def count_alive(
    lifetimes: Iterable[tuple[str, datetime | None, datetime | None, int]], dates: Sequence[date]
) -> dict[date, Mapping[str, int]]:
    """Return how many of each type existed at some moment of each day; ``lifetimes`` are (type, created, deleted,
    count).

    Without a known creation, an entity always existed. This takes one pass for any number of days: each entry is added
    on its first day and subtracted after its last.
    """
    starts = [start_of_day(day) for day in dates]
    ends = [start_of_day(day + ONE_DAY) for day in dates]
    changes: dict[str, list[int]] = defaultdict(lambda: [0] * (len(dates) + 1))
    for name, since, until, count in lifetimes:
        first = 0 if since is None else bisect_right(ends, since)
        after = len(dates) if until is None else bisect_left(starts, until)
        if first < after:
            changes[name][first] += count
            changes[name][after] -= count
    totals = {name: list(accumulate(of_type)) for name, of_type in sorted(changes.items())}
    return {day: {name: counts[at] for name, counts in totals.items()} for at, day in enumerate(dates)}
