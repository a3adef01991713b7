"""The interface of an emitter: a model of its ``params``, and an object that writes periods of a tenant's facts to
another place.

Emitters are found in the entry-point group ``chargeback.emitters``, which names an :class:`EmitterType`. They never
access the store: they read from :class:`Facts`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from threading import Event
from typing import Any, ClassVar, Final, Literal, Protocol

import pyarrow as pa

from chargeback.model.days import ONE_DAY, DayRange, month_of, week_of
from chargeback.settings import LocalPath, Settings

#: The values of ``aggregation``, finest first.
HOURLY: Final = "hourly"
DAILY: Final = "daily"
WEEKLY: Final = "weekly"
MONTHLY: Final = "monthly"
AGGREGATIONS: Final = (HOURLY, DAILY, WEEKLY, MONTHLY)

__all__ = [
    "AGGREGATIONS",
    "DAILY",
    "HOURLY",
    "MONTHLY",
    "OTHER",
    "WEEKLY",
    "Emitter",
    "EmitterContext",
    "EmitterParams",
    "EmitterType",
    "Existing",
    "Facts",
    "FocusKind",
    "LocalPath",
    "Period",
    "Sum",
]

#: The id under which :meth:`Facts.charged` adds up the smaller sums.
OTHER: Final = "OTHER"


class EmitterParams(Settings):
    """Base of every emitter's ``params``: unknown keys are errors."""


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """UTC days that are emitted as one: a day, a week from its Monday, a calendar month.

    ``aggregation`` is the unit of time of its rows; ``hourly`` and ``daily`` rows are emitted day by day.
    """

    days: DayRange
    aggregation: str = DAILY

    @property
    def start(self) -> date:
        """The first day, which identifies the period."""
        return self.days.start

    @classmethod
    def containing(cls, day: date, aggregation: str) -> Period:
        """Return the period in which ``day`` is emitted.

        >>> str(Period.containing(date(2026, 1, 1), "weekly").start)
        '2025-12-29'
        """
        if aggregation == WEEKLY:
            return cls(week_of(day), aggregation)
        if aggregation == MONTHLY:
            return cls(month_of(day), aggregation)
        return cls(DayRange(day, day + ONE_DAY), aggregation)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of charges or billing lines of a UTC day with ``values`` in the grouping columns."""

    day: date
    values: tuple[str, ...]
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Existing:
    """How many resources and identities existed at some moment of a day, by type."""

    resources: Mapping[str, int]
    identities: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FocusKind:
    """Which data in FOCUS: the ``version`` (``1.2``, ``1.4``), among whom lines are divided (``split``: ``identities``,
    ``topics``, ``none``), the format of the file (``form``: ``csv``, ``parquet``), and whether a month of the books has
    what was posted to it (``is_posted``) or, as every other month, what was charged on its days."""

    version: str
    split: str
    form: Literal["csv", "parquet"]
    is_posted: bool = True


class Facts(Protocol):
    """The data of a tenant for an emitter; valid while :meth:`Emitter.emit` runs.

    Raises (everywhere): StorageError when the facts cannot be read; Stopped when the run must stop. An emitter must not
    catch them.
    """

    @property
    def days(self) -> Sequence[date]:
        """Return the calculated days within the emitter's ``lookback_days``, ascending."""

    def rows(self, period: Period) -> Iterator[pa.RecordBatch]:
        """Yield the chargeback rows of a period as stored, in their order; columns as in
        :data:`chargeback.model.chargeback.CHARGEBACKS`."""

    def csv(self, period: Period) -> Iterator[memoryview]:
        """Yield the rows of a period in the format of the API's CSV export (UTF-8, header first). If the period's
        aggregation is coarser than the rows, they are summed: one row per unit of time and combination of ids."""

    def focus(self, period: Period, kind: FocusKind) -> Iterator[memoryview]:
        """Yield the bill of the calculated days of a period in FOCUS, as a file. Its rows are as fine as the bill's."""

    def focus_metadata(self, period: Period, kind: FocusKind) -> Mapping[str, Any]:
        """Return the metadata of that file, in the form of FOCUS."""

    def charged(self, days: DayRange, by: Sequence[str], most: int | None = None) -> Iterator[Sum]:
        """Return sums of chargebacks per day and columns, ordered by columns, then by day.

        With ``most``, only that many sums of a day, those of the largest amounts, are separate; all others have
        :data:`OTHER` as their ids, so that the total remains the same."""

    def billed(self, days: DayRange, by: Sequence[str]) -> Iterator[Sum]:
        """Return sums of billing lines per day and columns, ordered by columns, then by day."""

    def existing(self, days: Sequence[date]) -> Mapping[date, Existing]:
        """Return the size of the inventory on each of these days."""

    def check(self) -> None:
        """Check whether the run must stop. Call this before a long operation.

        Raises:
            Stopped: the run must stop.
        """


@dataclass(frozen=True, slots=True)
class EmitterContext:
    """The settings that an emitter sees: its own name, and its tenant."""

    name: str
    tenant_name: str
    tenant_id: str
    ecosystem: str
    currency: str
    aggregation: str = DAILY


class Emitter(ABC):
    """Emits periods of one tenant during one run."""

    #: The maximum number of periods in a call of :meth:`emit`; None for no limit.
    batch: int | None = 1

    @abstractmethod
    def emit(self, periods: Sequence[Period], facts: Facts) -> None:
        """Write these periods completely, replacing what was written for them before. They count as emitted when this
        returns; an exception is recorded as their error, and they are tried again in the next run.

        Raises:
            EmitterError: they could not be written; the message says why and shows no secret.
        """

    def close(self) -> None:  # noqa: B027 - most emitters have nothing to close
        """Release all resources; called once, at the end of the run."""


class EmitterType(ABC):
    """A type of emitter: the object that the entry point names. The value of ``type:`` is the entry point's name."""

    #: The model of ``params``; unknown keys are errors.
    params_model: ClassVar[type[EmitterParams]] = EmitterParams
    #: The supported values of ``aggregation``.
    aggregations: ClassVar[frozenset[str]] = frozenset(AGGREGATIONS)

    @abstractmethod
    def open(self, context: EmitterContext, params: Any, stop: Event) -> Emitter:
        """Start work for one tenant. ``params`` is an instance of ``params_model``; every wait must end when ``stop``
        is set.

        Raises:
            EmitterError: it cannot start; the message says why.
        """

    def wants_newest_only(self, params: Any) -> bool:
        """Return whether only the newest period is emitted; all others are then skipped."""
        return False

    def follows_books(self, params: Any) -> bool:
        """Return whether a period has what was posted to it: then that of a closed month is emitted once more when it
        is closed, and no more; what is learned of it later changes the first open month."""
        return False

    def destinations(self, context: EmitterContext, params: Any) -> tuple[str, ...]:
        """Return its destinations as texts. Two emitters with the same destination are a configuration error."""
        return ()
