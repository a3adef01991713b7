"""The state of each day: what was gathered, what was calculated, from which inputs, and what these lacked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from chargeback.model.days import DayRange
from chargeback.store.control.schema import days

# What a day can lack, beside listings: the keys of ``DayState.incomplete``.
METRICS: Final = "metrics"
TOPIC_METRICS: Final = "topic metrics"
BILL: Final = "bill"
_LISTING: Final = "listing of "
#: By which rules evidence is taken now; that of an earlier version is measured once more.
EVIDENCE_VERSION: Final = 1


def listing(kind: str) -> str:
    """What a day lacks that was calculated while a type could not be listed."""
    return f"{_LISTING}{kind}"


@dataclass(frozen=True, slots=True)
class DayState:
    """One row of the ``days`` table. ``error`` is the day's own trouble, in a sentence.

    ``incomplete`` tells what the day had to do without, and why: the ``metrics``, the ``topic metrics``, a part of the
    ``bill``, or the ``listing of`` a type. Such a day is calculated again once the whole answer can be had.
    ``topic_overlay_gathered`` tells that measurements of topics are stored. ``topic_due`` queues the day for the topic
    overlay; ``topic_fingerprint`` is the bill that was attributed last. ``revision`` and ``topic_revision`` are the
    numbers of the stored revisions; 0 means there is none.
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
    incomplete: Mapping[str, str] = field(default_factory=dict)
    evidence_version: int = 0
    billing_lines: int = 0
    chargeback_rows: int = 0
    revision: int = 0
    topic_revision: int = 0
    error: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether everything is there to calculate the day, and it has not been."""
        return self.billing_gathered and self.resources_gathered and not self.chargeback_calculated

    @property
    def was_calculated(self) -> bool:
        """Whether the day has been calculated, if only from an earlier bill: its rows are there until it is again."""
        return self.chargeback_calculated or self.calculated_fingerprint is not None

    @property
    def has_evidence(self) -> bool:
        """Whether the day was calculated from measurements, which are kept."""
        return self.calculated_fingerprint is not None and METRICS not in self.incomplete

    @property
    def missing_listings(self) -> list[str]:
        """The types that could not be listed when the day was calculated."""
        return sorted(key.removeprefix(_LISTING) for key in self.incomplete if key.startswith(_LISTING))

    @property
    def lacks(self) -> list[str]:
        """What the day had to do without, and not why."""
        return sorted(self.incomplete)

    @property
    def shortcomings(self) -> list[str]:
        """What the day had to do without, each in a sentence."""
        return [f"{what}: {why}" for what, why in sorted(self.incomplete.items())]


# Made once: building them takes longer than running them.
_ALL_DAYS: Final = select(days).order_by(days.c.tracking_date)
_DAYS_WITHIN: Final = _ALL_DAYS.where(
    days.c.tracking_date >= bindparam("start"), days.c.tracking_date < bindparam("end")
)


def _state(row: Row[Any]) -> DayState:
    return DayState(**row._mapping)


def read_days(connection: Connection, within: DayRange | None = None) -> list[DayState]:
    """The states of the days of a range, or of all, ascending."""
    if within is None:
        return [_state(row) for row in connection.execute(_ALL_DAYS)]
    return [_state(row) for row in connection.execute(_DAYS_WITHIN, {"start": within.start, "end": within.end})]


def read_day_state(connection: Connection, day: date) -> DayState:
    """The state of one day; that of a day never handled is all false."""
    row = connection.execute(select(days).where(days.c.tracking_date == day)).first()
    return DayState(day) if row is None else _state(row)


def save_day(connection: Connection, day: date, **changes: Any) -> None:
    """Change columns of one day's row, which is made where there is none."""
    changed = connection.execute(update(days).where(days.c.tracking_date == day).values(**changes))
    if changed.rowcount == 0:
        connection.execute(insert(days).values(tracking_date=day, **changes))


def mark_incomplete(connection: Connection, day: date, reasons: Mapping[str, str | None]) -> None:
    """Note why something was missing when a day was handled; none for what is not missing any more."""
    known = connection.execute(select(days.c.incomplete).where(days.c.tracking_date == day)).scalar() or {}
    changed = {what: why for what, why in (dict(known) | dict(reasons)).items() if why is not None}
    if changed != known:
        save_day(connection, day, incomplete=changed)


def mark_resources_gathered(connection: Connection) -> None:
    """Every gathered day, however old, now has an inventory to be calculated with."""
    connection.execute(
        update(days).where(days.c.billing_gathered, ~days.c.resources_gathered).values(resources_gathered=True)
    )


def require_calculation(connection: Connection, affected: Collection[date]) -> None:
    """Let days be calculated again."""
    connection.execute(update(days).where(days.c.tracking_date.in_(affected)).values(chargeback_calculated=False))


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
