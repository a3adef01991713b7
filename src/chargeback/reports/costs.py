"""The costs of a period with everything that a page shows about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from pydantic import Field

from chargeback.model.currency import Conversion, Rates
from chargeback.model.days import ONE_DAY, DayRange, InstantRange, first_day_of, instants
from chargeback.model.money import difference, total
from chargeback.reports.answers import (
    CONVERSION,
    Amount,
    ComparedWith,
    ConversionItem,
    Instant,
    ResponseModel,
    currency_of,
)
from chargeback.reports.forecast import CostForecast, forecast, history, known_days, scheduled_types
from chargeback.reports.names import NAMED_COLUMNS, names_in, names_of_values
from chargeback.reports.periods import CalendarPeriod
from chargeback.reports.reconciliation import ReconciledState, reconcile, states_seen
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.topic_costs import CostTopics, TopicCosts, named_topics, of_topics, topic_costs
from chargeback.store.control.days import DayState
from chargeback.store.control.inventory_lists import RESOURCES, Named
from chargeback.store.queries.costs import Breakdown, CostQuery, Item, Totals, costs, days_with_rows
from chargeback.store.queries.keys import TAG_PREFIX
from chargeback.store.queries.lookups import CATEGORY_PREFIX
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import tag_coverage

#: The optional parts of a response.
PARTS: Final = ("issues", "days", "forecast", "topics")
#: The optional parts for posted costs.
POSTED_PARTS: Final = ("issues",)
#: Stands for the usual breakdowns of a tenant.
USUAL: Final = "usual"
_USUAL_COLUMNS: Final = ("identity_id", "environment_id", "product_type", "resource_id")
#: A tag is usual if at least this share of the cost of the last calculated days has it.
_OFTEN: Final = Decimal("0.5")
_COVERAGE_DAYS: Final = 30
_ZERO: Final = Decimal(0)


@dataclass(frozen=True)
class CostRequest:
    """A request for costs: a period and the one it is compared with, in the calendar of ``zone``; the ``selection`` of
    rows; the columns of the breakdowns (``series``: over time), how many values they name, and the optional ``parts``.
    All amounts are converted by ``conversion``, if there is one."""

    period: CalendarPeriod
    compared: CalendarPeriod | None
    selection: Selection
    zone: ZoneInfo
    unit: str
    by: tuple[str, ...]
    series: str
    top: int
    parts: frozenset[str] = frozenset(PARTS)
    conversion: Conversion | None = None
    is_posted: bool = False

    @property
    def window(self) -> InstantRange:
        """Return the instants of the period."""
        return instants(self.period.start, self.period.end, self.zone)

    @property
    def compared_window(self) -> InstantRange | None:
        """Return the instants of the other period."""
        other = self.compared
        return None if other is None else instants(other.start, other.end, self.zone)

    @property
    def rates(self) -> Rates | None:
        """Return the rates for converting amounts, if any."""
        return None if self.conversion is None else self.conversion.rates


class CostTotal(ResponseModel):
    """The sums of everything that matches."""

    amount: Amount
    usage: Amount
    shared: Amount
    rows: int
    unallocated: Amount = Field(description="The costs without an identity to charge.")
    previous: Amount | None = Field(description="The other period's sum; null without another period.")
    previous_unallocated: Amount | None


class CostItem(ResponseModel):
    """One value of a breakdown."""

    value: str | None = Field(description="Null for rows without a value.", examples=["sa-123abc"])
    name: str | None = Field(
        description="The display name, if the value is an id, or if its cost category has a name for it.",
        examples=["orders-service"],
    )
    kind: str | None = Field(description="Its type in the inventory.", examples=["service_account"])
    deleted_at: Instant | None
    amount: Amount
    previous: Amount | None
    usage: Amount
    rows: int
    amounts: list[Amount] = Field(description="The amounts by time in the breakdown of the series; else empty.")


class OtherValues(ResponseModel):
    """The sum of all values that are not named."""

    count: int
    amount: Amount
    previous: Amount | None
    amounts: list[Amount]


class CostMover(ResponseModel):
    """A value whose cost changed much."""

    value: str | None
    name: str | None
    amount: Amount
    previous: Amount


class CostBreakdown(ResponseModel):
    """The costs by the values of one column or tag. Items and `other` sum to the total."""

    by: str = Field(examples=["identity_id"])
    items: list[CostItem] = Field(description="The values with the largest amounts, the largest first.")
    other: OtherValues | None
    movers: list[CostMover] = Field(description="The values that changed most; empty without another period.")


class CostIssue(ResponseModel):
    """Costs that were not allocated as their policy intends, for one reason."""

    reason: str = Field(examples=["NO_OWNER_LOCATED"])
    unallocated: bool = Field(description="True: charged to no one. False: split by the next method.")
    amount: Amount
    rows: int
    resources: int = Field(description="The number of affected resources.")


class CostDay(ResponseModel):
    """One UTC day of the whole tenant, regardless of filters."""

    date: date
    state: ReconciledState
    billed: Amount
    charged: Amount
    difference: Amount
    topics: bool = Field(description="Whether its topics are attributed.")
    error: str | None


class CostsAnswer(ResponseModel):
    """The costs of a period, and of the period that it is compared with."""

    start_date: date
    end_date: date
    timezone: str = Field(examples=["UTC"])
    compared_with: ComparedWith | None
    days_with_costs: int = Field(description="UTC days of the period that have costs, regardless of filters.")
    times: list[date] = Field(description="The units of time that the period touches, ascending.")
    amounts: list[Amount] = Field(description="The amount of each unit of time.")
    previous_amounts: list[Amount | None] = Field(
        description="The other period's amounts, aligned by the first days of both; null where it has no costs. Empty "
        "without another period."
    )
    total: CostTotal
    breakdowns: list[CostBreakdown]
    issues: list[CostIssue] | None = Field(description="Null unless included, as are the following fields.")
    days: list[CostDay] | None
    forecast: CostForecast | None = Field(description="Also null if there are too few days.")
    topics: CostTopics | None = Field(description="Also null if topics are not attributed.")
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    revision: str = Field(
        description="The version of the data: equal revisions have equal figures. Within a scope, the version of these "
        "figures."
    )


class BreakdownRow(ResponseModel):
    """One value of a breakdown in a table, or the sum of those that are not named, of which ``others`` is the
    number."""

    by: str
    value: str | None = None
    name: str | None = None
    kind: str | None = None
    others: int | None = None
    amount: Amount
    previous: Amount | None
    usage: Amount | None = None
    rows: int | None = None


def coverage_of_tags(reader: TenantReader, last: date | None) -> dict[str, Decimal | None]:
    """Return for each tag key the share of tagged costs in the 30 days up to ``last``, the last calculated day, from 0
    to 1; None if there are no costs."""
    keys = reader.visible_tags().keys()
    if last is None:
        return dict.fromkeys(keys)
    return tag_coverage(reader, instants(last - timedelta(days=_COVERAGE_DAYS - 1), last), keys)


def breakdowns_of(reader: TenantReader, last: date | None, by: Iterable[str], most: int) -> tuple[str, ...]:
    """Return at most ``most`` of the names in ``by``, in which ``usual`` is replaced by the usual breakdowns: the
    tenant's first cost category, the tag of most of its costs, and columns that have values for every tenant."""
    found: list[str] = []
    for name in by:
        if name != USUAL:
            found.append(name)
            continue
        found += [f"{CATEGORY_PREFIX}{key}" for key in sorted(reader.categories.index.by_key)[:1]]
        shares = {key: share for key, share in coverage_of_tags(reader, last).items() if share and share >= _OFTEN}
        found += [f"{TAG_PREFIX}{key}" for key in sorted(shares, key=lambda key: (-shares[key], key))[:1]]
        found += _USUAL_COLUMNS
    return tuple(dict.fromkeys(found))[:most]


def report(tenant: TenantView, reader: TenantReader, request: CostRequest) -> CostsAnswer:
    """Return the costs of a tenant, without a revision.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        ValueError: costs cannot be filtered by these columns.
    """
    period, compared, other = request.period, request.compared, request.compared_window
    query = CostQuery(
        request.selection,
        other,
        request.by,
        request.series,
        request.top,
        request.unit,
        request.zone,
        issues="issues" in request.parts,
        rates=request.rates,
    )
    found = costs(reader, query)
    # The reconciliation of days is about the whole bill.
    shows_days = "days" in request.parts and reader.sees_everything
    topics, ignored = _topics(tenant, reader, request)
    clusters = [] if topics is None else [each.cluster_resource_id for each in topics.items]
    with tenant.store.control.read() as connection:
        states = states_seen(reader, connection)
        names = names_in(connection, found.breakdowns, clusters)
    times = buckets_of(period, request.unit)
    series = [found.series.get(label) for label in times]
    return CostsAnswer(
        start_date=period.start,
        end_date=period.end,
        timezone=request.zone.key,
        compared_with=None
        if compared is None or other is None
        else ComparedWith(
            start_date=compared.start, end_date=compared.end, days_with_costs=days_with_rows(reader, other)
        ),
        days_with_costs=days_with_rows(reader, request.window),
        times=[date.fromisoformat(label) for label in times],
        amounts=[total(amounts or ()) for amounts in series],
        previous_amounts=_aligned(found.previous, request),
        total=_total(found.totals, has_previous=compared is not None),
        breakdowns=[
            _breakdown(
                each,
                {} if (kind := NAMED_COLUMNS.get(each.by)) is None else names[kind],
                names_of_values(reader, each.by),
                series if each.by == request.series else (),
                has_previous=compared is not None,
            )
            for each in found.breakdowns
        ],
        issues=[CostIssue.like(issue) for issue in found.issues] if "issues" in request.parts else None,
        days=_days(reader, states, request) if shows_days else None,
        forecast=_forecast(tenant, reader, states, request) if "forecast" in request.parts else None,
        topics=None
        if topics is None
        else CostTopics(
            total=topics.total,
            items=named_topics(topics, names[RESOURCES]),
            other=topics.other,
            ignored_filters=ignored,
        ),
        **currency_of(tenant.currency, request.conversion),
        revision="",
    )


def breakdown_rows(answer: CostsAnswer) -> Iterator[BreakdownRow]:
    """Yield the items of all breakdowns, each breakdown followed by the sum of its other values."""
    for breakdown in answer.breakdowns:
        for each in breakdown.items:
            yield BreakdownRow.like(each, by=breakdown.by, others=None)
        if (other := breakdown.other) is not None:
            yield BreakdownRow(by=breakdown.by, others=other.count, amount=other.amount, previous=other.previous)


def _total(totals: Totals, *, has_previous: bool) -> CostTotal:
    return CostTotal(
        amount=totals.amount,
        usage=totals.usage,
        shared=difference(totals.amount, totals.usage),
        rows=totals.rows,
        unallocated=totals.unallocated,
        previous=totals.previous if has_previous else None,
        previous_unallocated=totals.previous_unallocated if has_previous else None,
    )


def _breakdown(
    breakdown: Breakdown,
    known: Mapping[str, Named],
    names: Mapping[str, str],
    series: Sequence[Sequence[Decimal] | None],
    *,
    has_previous: bool,
) -> CostBreakdown:
    """Return a breakdown: ``known`` has its values in the inventory, ``names`` other names of values."""

    def name(value: str | None) -> str | None:
        entity = known.get(value or "")
        return entity.name if entity else names.get(value or "")

    def over_time(slot: int) -> list[Decimal]:
        return [amounts[slot] if amounts else _ZERO for amounts in series]

    def item(found: Item, slot: int) -> CostItem:
        entity = known.get(found.value or "")
        return CostItem(
            value=found.value,
            name=name(found.value),
            kind=entity and entity.type,
            deleted_at=entity and entity.deleted_at,
            amount=found.amount,
            previous=found.previous if has_previous else None,
            usage=found.usage,
            rows=found.rows,
            amounts=over_time(slot),
        )

    def mover(found: Item) -> CostMover:
        return CostMover(value=found.value, name=name(found.value), amount=found.amount, previous=found.previous)

    other = None
    if breakdown.other is not None:
        count, amount, previous = breakdown.other
        before = previous if has_previous else None
        other = OtherValues(count=count, amount=amount, previous=before, amounts=over_time(-1))
    return CostBreakdown(
        by=breakdown.by,
        items=[item(found, slot) for slot, found in enumerate(breakdown.items)],
        other=other,
        movers=[mover(found) for found in breakdown.movers] if has_previous else [],
    )


def buckets_of(period: CalendarPeriod, unit: str) -> tuple[str, ...]:
    """Return the labels of the units of time that a period touches, ascending."""
    return tuple(dict.fromkeys(_bucket_of(day, unit) for day in DayRange(period.start, period.end + ONE_DAY)))


def _bucket_of(day: date, unit: str) -> str:
    return first_day_of(unit, day).isoformat()


def _aligned(previous: Mapping[date, Decimal], request: CostRequest) -> tuple[Decimal | None, ...]:
    """Return the other period's amounts by days of this one, aligned by the first days of both; None where it has no
    costs."""
    if request.compared is None:
        return ()
    if request.is_posted:
        months = buckets_of(request.compared, "month")
        return tuple(previous.get(date.fromisoformat(each)) for each in months)
    amounts: dict[str, list[Decimal]] = {}
    for day, amount in previous.items():
        matching = request.period.start + (day - request.compared.start)
        if request.period.start <= matching <= request.period.end:
            amounts.setdefault(_bucket_of(matching, request.unit), []).append(amount)
    return tuple(
        total(amounts[label]) if label in amounts else None for label in buckets_of(request.period, request.unit)
    )


def _topics(tenant: TenantView, reader: TenantReader, request: CostRequest) -> tuple[TopicCosts | None, list[str]]:
    if "topics" not in request.parts or tenant.topic_attribution_status != "enabled":
        return None, []
    selection, ignored = of_topics(request.selection)
    compared = request.compared_window
    return topic_costs(reader, selection, compared, request.top, traffic=False, rates=request.rates), ignored


def _days(reader: TenantReader, states: Mapping[date, DayState], request: CostRequest) -> list[CostDay]:
    days = reconcile(reader, states, request.window.days())
    conversion = request.conversion
    return [
        CostDay(
            date=day.day,
            state=day.state,
            billed=day.billed,
            charged=day.charged,
            difference=day.difference,
            topics=day.topics,
            error=day.error,
        )
        for day in (days if conversion is None else [each.converted(conversion) for each in days])
    ]


def _forecast(
    tenant: TenantView, reader: TenantReader, states: Mapping[date, DayState], request: CostRequest
) -> CostForecast | None:
    """Return the forecast of the month of the last calculated day, if the period contains that day."""
    days = known_days(states)
    last = None if days is None else days.end - ONE_DAY
    if days is None or last is None or not request.period.start <= last <= request.period.end:
        return None
    known = history(reader, request.selection, days, scheduled_types(reader, days))
    found = forecast(known, tenant.currency)
    return found if found is None or request.conversion is None else found.converted(request.conversion)
