"""Back-tests: anomalies and forecasts on past days, with the data as it was known then."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, Literal

from chargeback.model.anomalies import FEWEST, Criteria
from chargeback.model.days import ONE_DAY, DayRange, month_of, start_of_day
from chargeback.model.money import total
from chargeback.reports.anomalies import AnomaliesRequest, AnomalyItem, Remembered, anomalies
from chargeback.reports.forecast import WEEK, CostForecast, forecast, history, known_days, scheduled_types
from chargeback.store.control.days import DayState, read_days
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import daily_amounts
from chargeback.store.tenant import TenantStore

#: The last known day is at most this long before a day.
_LATEST: Final = timedelta(days=62)
#: Stories that were over longer ago were not reported.
_NEWS: Final = timedelta(days=7)
_MOST: Final = 1000


@dataclass(frozen=True)
class Alarm:
    """A story that would have been reported first on the evening of a day.

    Attributes:
        story: the story as it was known then.
        outcome: the present state of it: whether it still is an anomaly.
    """

    raised: date
    story: AnomalyItem
    outcome: Literal["stands", "withdrawn"]

    @property
    def days_late(self) -> int:
        """Return how many days after its first day it would have been reported."""
        return (self.raised - self.story.first_date).days


@dataclass(frozen=True)
class BackTest:
    """What would have been reported on some days; ``unknown`` are the days whose data as of then is no longer kept."""

    days: DayRange
    alarms: list[Alarm]
    unknown: list[date]


def back_test(store: TenantStore, engine: QueryEngine, days: DayRange, by: Criteria, currency: str) -> BackTest:
    """Return which anomalies some settings would have reported on the evening of each day (the end of the UTC day),
    from bills, measurements and allocations as of then, without marks and without a limit for a week.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    caches = LookupCaches()
    raised: dict[str, tuple[date, AnomalyItem]] = {}
    unknown = []
    for day in days:
        instant = start_of_day(day + ONE_DAY)
        with open_reader(engine, store, CancellationToken(), caches, as_of=instant) as reader:
            states = reader.past_states or {}
            last = _last(states.values())
            if last is None:
                unknown.append(day)
                continue
            request = AnomaliesRequest(DayRange(last - _NEWS + ONE_DAY, last + ONE_DAY), by, _MOST, contributors=True)
            for each in anomalies(reader, states, request, currency, Remembered(), _no_names).items:
                if not each.is_explained:
                    raised.setdefault(each.id, (day, each))
    return BackTest(days, _judged(store, engine, raised, by, currency), unknown)


def _judged(
    store: TenantStore,
    engine: QueryEngine,
    raised: Mapping[str, tuple[date, AnomalyItem]],
    by: Criteria,
    currency: str,
) -> list[Alarm]:
    """Return the alarms with their present states."""
    if not raised:
        return []
    first = min(story.first_date for _, story in raised.values())
    with store.control.read() as connection:
        states = {each.tracking_date: each for each in read_days(connection)}
    last = max(states)
    with open_reader(engine, store, CancellationToken(), LookupCaches()) as reader:
        request = AnomaliesRequest(DayRange(first, last + ONE_DAY), by, _MOST, raised.keys())
        standing = {each.id for each in anomalies(reader, states, request, currency, Remembered(), _no_names).items}
    return [
        Alarm(day, story, "stands" if number in standing else "withdrawn") for number, (day, story) in raised.items()
    ]


def _last(states: Iterable[DayState]) -> date | None:
    """Return the last calculated day; None if there are too few to examine any."""
    calculated = [each.tracking_date for each in states if each.was_calculated]
    return max(calculated) if len(calculated) >= FEWEST else None


def _no_names(_column: str, _ids: Collection[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class PastForecast:
    """The forecast of a month on the evening of a day, by what was known then, and the actual cost of the month.

    Attributes:
        known: the last day that was known.
        last_week: the forecast by the mean of the last seven known days.
    """

    evening: date
    known: date
    expected: Decimal
    low: Decimal
    high: Decimal
    last_week: Decimal
    actual: Decimal

    @property
    def is_inside(self) -> bool:
        """Return whether the actual cost lies in the interval."""
        return self.low <= self.actual <= self.high

    def off(self, expected: Decimal) -> float:
        """Return the error of a forecast as a part of the actual cost; negative if the forecast is too low."""
        return float(expected - self.actual) / float(self.actual)


@dataclass(frozen=True)
class ForecastTest:
    """The forecasts of some evenings; ``left_out`` are the evenings without one that can be compared: too few days were
    known, the month is not over, or it has no costs."""

    made: list[PastForecast]
    left_out: list[date]


def forecast_back_test(store: TenantStore, engine: QueryEngine, days: DayRange, currency: str) -> ForecastTest:
    """Return the forecast of the month of the last known day on the evening of each day (the end of the UTC day), from
    bills and allocations as of then, and the actual cost of that month.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    caches = LookupCaches()
    with store.control.read() as connection:
        whole = {each.tracking_date for each in read_days(connection) if each.chargebacks.is_current}
    with open_reader(engine, store, CancellationToken(), caches) as reader:
        charged = daily_amounts(reader, CHARGEBACKS, Selection.of_days(_with_month_ends(days)))
    made, left_out = [], []
    for day in days:
        instant = start_of_day(day + ONE_DAY)
        with open_reader(engine, store, CancellationToken(), caches, as_of=instant) as reader:
            known = known_days(reader.past_states or {})
            found = None if known is None else _expected(reader, known, currency)
        if found is None:
            left_out.append(day)
            continue
        expected, last_week = found
        month = month_of(expected.actual_to)
        actual = total(charged.get(each, Decimal(0)) for each in month)
        if actual <= 0 or not whole.issuperset(month):
            left_out.append(day)
            continue
        amounts = (expected.expected, expected.low, expected.high, last_week)
        made.append(PastForecast(day, expected.actual_to, *amounts, actual))
    return ForecastTest(made, left_out)


def _expected(reader: TenantReader, known: DayRange, currency: str) -> tuple[CostForecast, Decimal] | None:
    """Return the forecast of the month of the last known day, and the forecast by the mean of the last week."""
    past = history(reader, Selection.of_days(known), known, scheduled_types(reader, known))
    found = forecast(past, currency)
    if found is None:
        return None
    daily = total(past.amounts[-WEEK:]) / WEEK
    return found, found.actual + daily * (found.until - found.actual_to).days


def _with_month_ends(days: DayRange) -> DayRange:
    """Return some days and all days of the months that were forecast on them."""
    return DayRange(month_of(days.start - _LATEST).start, month_of(days.end).end)
