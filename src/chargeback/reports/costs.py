"""Everything about the costs of a period that a page shows at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from chargeback.model.currency import Conversion, Rates
from chargeback.model.days import ONE_DAY, DayRange, InstantRange, first_day_of, instants
from chargeback.model.money import total
from chargeback.reports.forecast import HISTORY, Forecast, forecast
from chargeback.reports.names import NamesByKind, names_in
from chargeback.reports.periods import Period
from chargeback.reports.reconciliation import ReconciledDay, reconcile, states_seen
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.topic_costs import TopicCosts, of_topics, topic_costs
from chargeback.store.control.days import DayState
from chargeback.store.queries.costs import CostQuery, Costs, costs, days_with_rows
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import daily_amounts

#: What an answer may have beside sums and breakdowns.
PARTS: Final = ("issues", "days", "forecast", "topics")
_ZERO: Final = Decimal(0)


@dataclass(frozen=True)
class CostRequest:
    """What is asked: a period and what it is compared with, in the calendar of ``zone``; its ``selection`` of rows; by
    what the costs are broken down (``series``: over time), how many values are named, and which ``parts`` come with
    them; all amounts are converted by ``conversion``, if there is one."""

    period: Period
    compared: Period | None
    selection: Selection
    zone: ZoneInfo
    unit: str
    by: tuple[str, ...]
    series: str
    top: int
    parts: frozenset[str] = frozenset(PARTS)
    conversion: Conversion | None = None

    @property
    def window(self) -> InstantRange:
        """The instants of the period."""
        return instants(self.period.start, self.period.end, self.zone)

    @property
    def compared_window(self) -> InstantRange | None:
        """The instants of the other period."""
        other = self.compared
        return None if other is None else instants(other.start, other.end, self.zone)

    @property
    def rates(self) -> Rates | None:
        """The rates by which amounts are converted, if they are."""
        return None if self.conversion is None else self.conversion.rates


@dataclass(frozen=True)
class CostReport:
    """The answer to a :class:`CostRequest`. Parts that were not asked for, or cannot be given, are None."""

    costs: Costs
    days_with_costs: int
    compared_days_with_costs: int
    times: tuple[str, ...]
    previous: tuple[Decimal | None, ...]
    names: NamesByKind = field(default_factory=dict)
    days: tuple[ReconciledDay, ...] | None = None
    forecast: Forecast | None = None
    topics: TopicCosts | None = None
    ignored_filters: tuple[str, ...] = ()


def report(tenant: TenantView, reader: TenantReader, request: CostRequest) -> CostReport:
    """Return the costs of a tenant.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        ValueError: costs cannot be filtered so.
    """
    query = CostQuery(
        request.selection,
        request.compared_window,
        request.by,
        request.series,
        request.top,
        request.unit,
        request.zone,
        issues="issues" in request.parts,
        rates=request.rates,
    )
    found = costs(reader, query)
    other = request.compared_window
    # Whether days are charged as they were billed is a matter of the whole bill.
    shows_days = "days" in request.parts and reader.sees_everything
    topics, ignored = _topics(tenant, reader, request)
    with tenant.store.control.read() as connection:
        states = states_seen(reader, connection)
        names = names_in(connection, found.breakdowns, [] if topics is None else [t.cluster_id for t in topics.items])
    return CostReport(
        found,
        days_with_rows(reader, request.window),
        0 if other is None else days_with_rows(reader, other),
        buckets_of(request.period, request.unit),
        _aligned(found.previous, request),
        names,
        _days(reader, states, request) if shows_days else None,
        _forecast(tenant, reader, states, request) if "forecast" in request.parts else None,
        topics,
        ignored,
    )


def buckets_of(period: Period, unit: str) -> tuple[str, ...]:
    """Return the labels of the units of time that a period touches, ascending."""
    return tuple(dict.fromkeys(_bucket_of(day, unit) for day in DayRange(period.start, period.end + ONE_DAY)))


def _bucket_of(day: date, unit: str) -> str:
    return first_day_of(unit, day).isoformat()


def _aligned(previous: Mapping[date, Decimal], request: CostRequest) -> tuple[Decimal | None, ...]:
    """Return the other period's amounts beside those of this one: its first day stands beside the first day. None
    where it has no costs at all."""
    if request.compared is None:
        return ()
    amounts: dict[str, list[Decimal]] = {}
    for day, amount in previous.items():
        beside = request.period.start + (day - request.compared.start)
        if request.period.start <= beside <= request.period.end:
            amounts.setdefault(_bucket_of(beside, request.unit), []).append(amount)
    return tuple(
        total(amounts[label]) if label in amounts else None for label in buckets_of(request.period, request.unit)
    )


def _topics(
    tenant: TenantView, reader: TenantReader, request: CostRequest
) -> tuple[TopicCosts | None, tuple[str, ...]]:
    if "topics" not in request.parts or tenant.topic_attribution_status != "enabled":
        return None, ()
    selection, ignored = of_topics(request.selection)
    compared = request.compared_window
    return topic_costs(reader, selection, compared, request.top, traffic=False, rates=request.rates), ignored


def _days(reader: TenantReader, states: Mapping[date, DayState], request: CostRequest) -> tuple[ReconciledDay, ...]:
    days = reconcile(reader, states, request.window.days())
    conversion = request.conversion
    return tuple(days) if conversion is None else tuple(day.converted(conversion) for day in days)


def _forecast(
    tenant: TenantView, reader: TenantReader, states: Mapping[date, DayState], request: CostRequest
) -> Forecast | None:
    """Return the forecast of the month of the last calculated day, where the period contains that day."""
    last = max((day for day, state in states.items() if state.was_calculated), default=None)
    if last is None or not request.period.start <= last <= request.period.end:
        return None
    first = last
    while first > last - timedelta(days=HISTORY) and _is_calculated(states, first - ONE_DAY):
        first -= ONE_DAY
    days = DayRange(first, last + ONE_DAY)
    selection = replace(request.selection, window=Selection.of_days(days).window)
    amounts = daily_amounts(reader, CHARGEBACKS, selection)
    found = forecast(last, [amounts.get(day, _ZERO) for day in days], tenant.currency)
    return found if found is None or request.conversion is None else found.converted(request.conversion)


def _is_calculated(states: Mapping[date, DayState], day: date) -> bool:
    return day in states and states[day].was_calculated
