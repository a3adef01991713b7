"""What an emitter gives: a model of its ``params``, and something that writes periods of a tenant's facts elsewhere.

An emitter is found through the entry-point group ``chargeback.emitters``, which names an :class:`EmitterType`. It
never sees the store: what it writes it is handed as :class:`Facts`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from threading import Event
from typing import Any, ClassVar, Final, Protocol

import pyarrow as pa

from chargeback.model.days import ONE_DAY, DayRange, month_of, week_of
from chargeback.settings import LocalPath, Settings

#: The values of ``aggregation``, from the finest.
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
    "LocalPath",
    "Period",
    "Sum",
]

#: What the sums that :meth:`Facts.charged` puts together are named.
OTHER: Final = "OTHER"


class EmitterParams(Settings):
    """Base of every emitter's ``params``: unknown keys are errors."""


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """UTC days that are emitted as one: a day, a week from its Monday, a calendar month.

    ``aggregation`` says how fine the rows of it are: those of ``hourly`` and of ``daily`` are emitted day by day.
    """

    days: DayRange
    aggregation: str = DAILY

    @property
    def start(self) -> date:
        """Its first day, by which it is named and remembered."""
        return self.days.start

    @classmethod
    def containing(cls, day: date, aggregation: str) -> Period:
        """The period in which ``day`` is emitted.

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
    """What was charged or billed on a UTC day under ``values`` of the columns it was summed by."""

    day: date
    values: tuple[str, ...]
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Existing:
    """How many resources and identities existed at some moment of a day, by type."""

    resources: Mapping[str, int]
    identities: Mapping[str, int]


class Facts(Protocol):
    """What an emitter may ask of its tenant; valid while :meth:`Emitter.emit` runs.

    Raises (everywhere): StorageError when the facts cannot be read; Stopped when the run was asked to end. An
    emitter lets both pass.
    """

    @property
    def days(self) -> Sequence[date]:
        """The calculated days within the emitter's ``lookback_days``, ascending."""

    def rows(self, period: Period) -> Iterator[pa.RecordBatch]:
        """The chargeback rows of a period as they are stored, in their order; columns as in
        :data:`chargeback.model.chargeback.CHARGEBACKS`."""

    def csv(self, period: Period) -> Iterator[memoryview]:
        """The rows of a period as the API's CSV export writes them (UTF-8, header first). Where the period's
        aggregation is coarser than the rows, they are summed: one row per unit of time and combination of ids."""

    def charged(self, days: DayRange, by: Sequence[str], most: int | None = None) -> Iterator[Sum]:
        """Sums of chargebacks per day and columns, ordered by columns, then by day.

        With ``most``, that many sums of a day, those of the largest amounts, stand by themselves; the ids of all others
        read :data:`OTHER`, so that nothing is lost of the total."""

    def billed(self, days: DayRange, by: Sequence[str]) -> Iterator[Sum]:
        """Sums of billing lines per day and columns, ordered by columns, then by day."""

    def existing(self, days: Sequence[date]) -> Mapping[date, Existing]:
        """The inventory of each of these days."""

    def check(self) -> None:
        """Go on only if nobody asked the run to end. To be called before something that takes long.

        Raises:
            Stopped: somebody did.
        """


@dataclass(frozen=True, slots=True)
class EmitterContext:
    """What an emitter may know: its own name, and the tenant it works for."""

    name: str
    tenant_name: str
    tenant_id: str
    ecosystem: str
    currency: str
    aggregation: str = DAILY


class Emitter(ABC):
    """An emitter at work for one tenant during one run."""

    #: How many periods :meth:`emit` takes at once; none for all there are.
    batch: int | None = 1

    @abstractmethod
    def emit(self, periods: Sequence[Period], facts: Facts) -> None:
        """Write these periods, whole, in place of what was written for them before. They count as emitted when this
        returns; whatever it raises is their error, and they are tried again in the next run.

        Raises:
            EmitterError: they could not be written; the message says why and shows no secret.
        """

    def close(self) -> None:  # noqa: B027 - most emitters have nothing to close
        """Give back what is held; called once, at the end of the run."""


class EmitterType(ABC):
    """A kind of emitter: what the entry point names. The value of ``type:`` is the entry point's name."""

    #: The model of ``params``; unknown keys are errors.
    params_model: ClassVar[type[EmitterParams]] = EmitterParams
    #: The values of ``aggregation`` that it can do.
    aggregations: ClassVar[frozenset[str]] = frozenset(AGGREGATIONS)

    @abstractmethod
    def open(self, context: EmitterContext, params: Any, stop: Event) -> Emitter:
        """Start work for one tenant. ``params`` is an instance of ``params_model``; every wait ends with ``stop``.

        Raises:
            EmitterError: it cannot work; the message says why.
        """

    def wants_newest_only(self, params: Any) -> bool:
        """Whether only the newest period is of interest; all others are then skipped."""
        return False

    def destinations(self, context: EmitterContext, params: Any) -> tuple[str, ...]:
        """Where it writes, in words. Two emitters that write to the same place are a configuration error."""
        return ()
