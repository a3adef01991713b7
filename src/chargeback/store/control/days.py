"""The state of each day: what was gathered, what was calculated and from which inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from chargeback.model.days import DayRange
from chargeback.store.control.schema import days


@dataclass(frozen=True, slots=True)
class DayState:
    """One row of the ``days`` table. ``error`` is the day's own trouble, in a sentence.

    ``topic_overlay_gathered`` tells that measurements of topics are stored. ``topic_due`` queues the day for the topic
    overlay; ``topic_fingerprint`` is the bill that was attributed last.
    """

    tracking_date: date
    billing_gathered: bool = False
    resources_gathered: bool = False
    chargeback_calculated: bool = False
    topic_overlay_gathered: bool = False
    topic_attribution_calculated: bool = False
    topic_due: bool = False
    topic_fingerprint: str | None = None
    topic_rows: int = 0
    gathered_fingerprint: str | None = None
    calculated_fingerprint: str | None = None
    gathered_at: datetime | None = None
    empty_answers: int = 0
    failed_attempts: int = 0
    metrics_unavailable: bool = False
    billing_lines: int = 0
    chargeback_rows: int = 0
    error: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether everything is there to calculate the day, and it has not been."""
        return self.billing_gathered and self.resources_gathered and not self.chargeback_calculated


def _state(row: Row[Any]) -> DayState:
    return DayState(**row._mapping)


def read_days(connection: Connection, within: DayRange | None = None) -> list[DayState]:
    """The states of the days of a range, or of all, ascending."""
    query = select(days).order_by(days.c.tracking_date)
    if within is not None:
        query = query.where(days.c.tracking_date >= within.start, days.c.tracking_date < within.end)
    return [_state(row) for row in connection.execute(query)]


def read_day_state(connection: Connection, day: date) -> DayState:
    """The state of one day; that of a day never handled is all false."""
    row = connection.execute(select(days).where(days.c.tracking_date == day)).first()
    return DayState(day) if row is None else _state(row)


def save_day(connection: Connection, day: date, **changes: Any) -> None:
    """Change columns of one day's row, which is made where there is none."""
    changed = connection.execute(update(days).where(days.c.tracking_date == day).values(**changes))
    if changed.rowcount == 0:
        connection.execute(insert(days).values(tracking_date=day, **changes))


def mark_resources_gathered(connection: Connection, within: DayRange) -> None:
    """Every gathered day of the range now has an inventory to be calculated with."""
    connection.execute(
        update(days)
        .where(days.c.billing_gathered, days.c.tracking_date >= within.start, days.c.tracking_date < within.end)
        .values(resources_gathered=True)
    )


def require_calculation(connection: Connection, affected: Collection[date] | DayRange) -> None:
    """Let days be calculated again."""
    query = update(days).values(chargeback_calculated=False)
    if isinstance(affected, DayRange):
        query = query.where(days.c.tracking_date >= affected.start, days.c.tracking_date < affected.end)
    else:
        query = query.where(days.c.tracking_date.in_(affected))
    connection.execute(query)


def due_days(connection: Connection) -> list[DayState]:
    """The days to calculate, oldest first."""
    return [state for state in read_days(connection) if state.is_due]


def days_without_metrics(connection: Connection, within: DayRange) -> list[date]:
    """Calculated days that had to do without the metrics source, and are to be calculated again when it answers."""
    query = select(days.c.tracking_date).where(
        days.c.metrics_unavailable,
        days.c.chargeback_calculated,
        days.c.tracking_date >= within.start,
        days.c.tracking_date < within.end,
    )
    return list(connection.execute(query.order_by(days.c.tracking_date)).scalars())


@dataclass(frozen=True, slots=True)
class DayCounts:
    """How many days are pending and calculated, and the newest calculated one."""

    pending: int
    calculated: int
    last_calculated: date | None


# Made once: building it takes as long as running it.
_COUNTS = select(
    func.count().filter(days.c.billing_gathered & ~days.c.chargeback_calculated),
    func.count().filter(days.c.chargeback_calculated),
    func.max(days.c.tracking_date).filter(days.c.chargeback_calculated),
)


def count_days(connection: Connection) -> DayCounts:
    """Counts over all days ever gathered."""
    return DayCounts(*connection.execute(_COUNTS).one())


def errors_of(states: Iterable[DayState]) -> list[str]:
    """The days' own errors, each with its date."""
    return [f"{state.tracking_date}: {state.error}" for state in states if state.error]
