"""The bill: ``GET /billing/v1/costs``, in windows, or day by day if the rows of a window are not daily.

Facts: a window is at most a month and starts at most a year back (docs: Invoices and costs); a page has at most
10,000 rows (OpenAPI). Under load, the API sometimes refuses dates in range as "too far in the past". From the
provider's OpenAPI (``billing/v1``, schema Cost) and observations in practice: rows without ids, units or resources,
amounts as text, dates with a trailing ``" 00:00:00"``, and the response shape of organizations created before
2024-05-15 (a top-level ``environment`` and a text in ``resource.environment``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final, NamedTuple

from chargeback.ecosystems.confluent_cloud.api import ControlPlane, ListRequest, classify_cloud_response
from chargeback.ecosystems.contract import GatheredDay, TenantContext
from chargeback.errors import SourceDataError, SourceError, SourceTooLarge, SourceUnavailable
from chargeback.model.billing import BillingLine
from chargeback.model.days import ONE_DAY, DayRange, months_later, start_of_day
from chargeback.model.money import parse_decimal, to_amount
from chargeback.sources.replies import Reply

ORGANIZATION = "organization"
UNKNOWN = "UNKNOWN"
AMOUNTS: Final = ("amount", "original_amount", "discount_amount", "price", "quantity")
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)
_MAX_TEXT_LENGTH = 2000

#: Resource type by the prefix of the id.
RESOURCE_TYPES: Final = {
    "lkc-": "kafka_cluster",
    "lsrc-": "schema_registry",
    "lcc-": "connector",
    "clcc-": "connector",
    "lksqlc-": "ksqldb_cluster",
    "lfcp-": "flink_compute_pool",
    "env-": "environment",
}

logger = logging.getLogger(__name__)

COSTS: Final = "/billing/v1/costs"
HISTORY_DAYS: Final = 364
_PAGE_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class CostRow:
    """A row of the response, and the days it spans."""

    days: DayRange
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LineContext:
    """What the rows do not have: the tenant's currency, and the resource id for rows without a resource."""

    currency: str
    organization_id: str


def read_row(fields: Mapping[str, Any]) -> CostRow:
    """Return the row with its days; without an end after the start, it spans one day.

    Raises:
        SourceDataError: the start is not a date.
    """
    start = _day(fields.get("start_date"))
    end = _day(fields["end_date"]) if fields.get("end_date") else start + ONE_DAY
    return CostRow(DayRange(start, max(end, start + ONE_DAY)), fields)


def to_line(row: CostRow, context: LineContext) -> BillingLine:
    """Return the billing line of a row that spans one day.

    ``total_cost`` is ``amount``, the final cost, or if absent the original amount less the discount. A row without a
    product has its line type as category. Amounts are rounded once, half-even, to twelve decimals; ``original_text``
    keeps the digits of one that had more, as ``name=digits``.

    Raises:
        SourceDataError: an amount is missing or not a number.
    """
    fields = row.fields
    numbers = {name: _number(fields, name) for name in AMOUNTS}
    original = numbers["original_amount"]
    total = numbers["amount"].amount
    if total is None:
        if original.exact is None:
            raise SourceDataError(f"a row of {row.days.start} has neither amount nor original_amount")
        total = to_amount(_EXACT.subtract(original.exact, numbers["discount_amount"].exact or Decimal(0)))
    resource = fields.get("resource")
    resource_id = _text(resource.get("id")) if isinstance(resource, dict) else _text(resource)
    line_type = _text(fields.get("line_type")) or _text(fields.get("product")) or UNKNOWN
    return BillingLine(
        day=row.days.start,
        timestamp=start_of_day(row.days.start),
        resource_id=resource_id or context.organization_id,
        resource_type=resource_type(resource_id) if resource_id else ORGANIZATION,
        resource_name=_text(resource.get("display_name")) if isinstance(resource, dict) else None,
        environment_id=_environment(fields, resource_id),
        product_category=_text(fields.get("product")) or line_type,
        product_type=line_type,
        total_cost=total,
        currency=context.currency,
        granularity=(_text(fields.get("granularity")) or "daily").lower(),
        quantity=numbers["quantity"].amount,
        unit_price=numbers["price"].amount,
        original_amount=original.amount,
        discount_amount=numbers["discount_amount"].amount,
        unit=_text(fields.get("unit")),
        network_access_type=_text(fields.get("network_access_type")),
        description=_text(fields.get("description")),
        tier=_tier(fields.get("tier_dimensions")),
        provider_id=_text(fields.get("id")),
        original_text=";".join(
            f"{name}={fields[name]}" for name, number in numbers.items() if number.exact != number.amount
        )
        or None,
    )


def resource_type(resource_id: str) -> str:
    """Return the resource type of an id, known by its prefix."""
    return next((kind for prefix, kind in RESOURCE_TYPES.items() if resource_id.startswith(prefix)), "unknown")


def _day(value: Any) -> date:
    """Return the date of a text; a time after it is ignored."""
    try:
        return datetime.fromisoformat(str(value).strip()).date()
    except ValueError:
        raise SourceDataError(f"{str(value)[:40]!r} is not the date of a cost") from None


class _Number(NamedTuple):
    """A number as the response has it, and the same as an amount; both are None if it has none."""

    exact: Decimal | None
    amount: Decimal | None


_NO_NUMBER: Final = _Number(None, None)


def _number(fields: Mapping[str, Any], name: str) -> _Number:
    """Return the number of that name."""
    value = fields.get(name)
    if value is None or value == "":
        return _NO_NUMBER
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
        raise SourceDataError(f"{name} of a cost is not a number")
    try:
        exact = parse_decimal(str(value))
        return _Number(exact, to_amount(exact))
    except (ValueError, ArithmeticError):
        raise SourceDataError(f"{name} of a cost is not an amount: {str(value)[:60]!r}") from None


def _environment(fields: Mapping[str, Any], resource_id: str | None) -> str | None:
    """Return the environment of the resource: ``resource.environment.id``, or the fields of older responses."""
    resource = fields.get("resource")
    for where in (resource.get("environment") if isinstance(resource, dict) else None, fields.get("environment")):
        found = _text(where.get("id")) if isinstance(where, dict) else _text(where)
        if found:
            return found
    return resource_id if resource_id and resource_id.startswith("env-") else None


def _tier(value: Any) -> str | None:
    if not isinstance(value, dict) or not value:
        return None
    return ";".join(f"{key}={value[key]}" for key in sorted(value))


def _text(value: Any) -> str | None:
    """Return a text, shortened if it is extremely long, or None if it is empty."""
    return value.strip()[:_MAX_TEXT_LENGTH] or None if isinstance(value, str) else None


class BillFetcher:
    """Fetches the bill of one tenant."""

    def __init__(self, control_plane: ControlPlane, context: TenantContext, days_per_query: int) -> None:
        self._control_plane = control_plane
        self._context = context
        self._days_per_query = days_per_query

    def gather(self, days: DayRange) -> Iterator[GatheredDay]:
        """Yield every day of the range once, oldest first.

        If the rows of a window cannot be used (a row spans several days or is not valid, or the pages repeat), it is
        fetched again day by day; a remaining problem is that day's error.

        Raises:
            SourceUnavailable: the provider does not respond.
            SourceRejected: it refuses the request.
        """
        earliest = self._context.today - timedelta(days=HISTORY_DAYS)
        reachable = DayRange(max(days.start, earliest), max(days.end, earliest))
        for day in DayRange(days.start, min(days.end, reachable.start)):
            yield GatheredDay(day, error=f"the provider keeps costs for {HISTORY_DAYS} days only")
        if not len(reachable):
            return
        organization = self._control_plane.organization_id() or self._context.tenant_id
        context = LineContext(self._context.currency, organization)
        for window in windows(reachable, self._days_per_query):
            yield from self._window(window, context)

    def _window(self, window: DayRange, context: LineContext) -> Iterator[GatheredDay]:
        try:
            rows = self._rows(window)
            alone = {day for row in rows if len(row.days) > 1 for day in row.days}
            lines = _lines_by_day([row for row in rows if row.days.start not in alone], window, context)
        except (SourceDataError, SourceTooLarge) as problem:
            logger.warning("costs of %s to %s: %s; fetching day by day", window.start, window.end, problem.message)
            alone, lines = set(window), {}
        else:
            if alone:
                logger.info(
                    "costs of %s to %s contain rows of several days; fetching day by day", window.start, window.end
                )
        for day in window:
            yield self._day(day, context) if day in alone else GatheredDay(day, lines.get(day, []))

    def _day(self, day: date, context: LineContext) -> GatheredDay:
        window = DayRange(day, day + ONE_DAY)
        try:
            rows = self._rows(window)
            lines = _lines_by_day(rows, window, context)
        except (SourceDataError, SourceTooLarge) as problem:
            return GatheredDay(day, error=f"costs: {problem}")
        spanning = next((row.days for row in rows if len(row.days) > 1), None)
        if spanning is not None:
            return GatheredDay(day, error=f"costs: a row spans {spanning.start} to {spanning.end} (exclusive)")
        return GatheredDay(day, lines.get(day, []))

    def _rows(self, window: DayRange) -> list[CostRow]:
        params = {"start_date": window.start.isoformat(), "end_date": window.end.isoformat()}
        listing = ListRequest(COSTS, params, page_size=_PAGE_SIZE, classify=_classify, bucket="costs")
        return [read_row(fields) for page in self._control_plane.pages(listing) for fields in page]


def windows(days: DayRange, days_per_query: int) -> Iterator[DayRange]:
    """Yield the range in pieces of at most ``days_per_query`` days, and never more than a calendar month: from 1
    February the provider returns 28 days."""
    start = days.start
    while start < days.end:
        end = min(start + timedelta(days=days_per_query), months_later(start, 1), days.end)
        yield DayRange(start, end)
        start = end


def _lines_by_day(rows: list[CostRow], window: DayRange, context: LineContext) -> dict[date, list[BillingLine]]:
    lines: dict[date, list[BillingLine]] = {}
    stray = 0
    for row in rows:
        if row.days.start in window:
            lines.setdefault(row.days.start, []).append(to_line(row, context))
        else:
            stray += 1
    if stray:
        # They are on the bill of their own days, and would be counted twice here.
        logger.warning("costs of %s to %s: ignored %s rows of other days", window.start, window.end, stray)
    return lines


def _classify(reply: Reply) -> SourceError | None:
    """Classify a response; a refusal of dates that are well in range may be retried."""
    error = classify_cloud_response(reply)
    if reply.status == 400 and error is not None and "too far in the past" in error.message.lower():
        return SourceUnavailable(error.message)
    return error
