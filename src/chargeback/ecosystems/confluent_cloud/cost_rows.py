"""From a row of ``GET /billing/v1/costs`` to a billing line.

Facts: the provider's OpenAPI (``billing/v1``, schema Cost) and what has been met in practice: rows without ids, units
or resources, amounts as text, dates with a trailing ``" 00:00:00"``, and the response shape of organizations created
before 2024-05-15 (a top-level ``environment`` and a text in ``resource.environment``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

from chargeback.errors import SourceDataError
from chargeback.model.billing import BillingLine
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.model.money import is_exact, parse_decimal, to_amount

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


@dataclass(frozen=True, slots=True)
class CostRow:
    """A row as it came, and the days it spans."""

    days: DayRange
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LineContext:
    """What the rows do not say: the tenant's currency, and who takes what has no resource."""

    currency: str
    organization_id: str


def read_row(fields: Mapping[str, Any]) -> CostRow:
    """The row with its days; an end that is absent or not after the start means one day.

    Raises:
        SourceDataError: the start is no date.
    """
    start = _day(fields.get("start_date"))
    end = _day(fields["end_date"]) if fields.get("end_date") else start + ONE_DAY
    return CostRow(DayRange(start, max(end, start + ONE_DAY)), fields)


def to_line(row: CostRow, context: LineContext) -> BillingLine:
    """The billing line of a row that spans one day.

    ``total_cost`` is ``amount``, the final cost; where it is absent, the original amount less the discount. A row
    without a product takes its line type as category. Amounts keep twelve decimals, rounded half-even once;
    the digits of one that had more are kept in ``original_text`` as ``name=digits``.

    Raises:
        SourceDataError: an amount is missing or no number.
    """
    fields = row.fields
    exact = {name: _number(fields, name) for name in AMOUNTS}
    original, total = exact["original_amount"], exact["amount"]
    if total is None:
        if original is None:
            raise SourceDataError(f"a row of {row.days.start} has neither amount nor original_amount")
        total = _EXACT.subtract(original, exact["discount_amount"] or Decimal(0))
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
        total_cost=to_amount(total),
        currency=context.currency,
        granularity=(_text(fields.get("granularity")) or "daily").lower(),
        quantity=_kept(exact["quantity"]),
        unit_price=_kept(exact["price"]),
        original_amount=_kept(original),
        discount_amount=_kept(exact["discount_amount"]),
        unit=_text(fields.get("unit")),
        network_access_type=_text(fields.get("network_access_type")),
        description=_text(fields.get("description")),
        tier=_tier(fields.get("tier_dimensions")),
        provider_id=_text(fields.get("id")),
        original_text=";".join(
            f"{name}={fields[name]}" for name, value in exact.items() if value is not None and not is_exact(value)
        )
        or None,
    )


def resource_type(resource_id: str) -> str:
    """The type that the prefix of an id tells."""
    return next((kind for prefix, kind in RESOURCE_TYPES.items() if resource_id.startswith(prefix)), "unknown")


def _day(value: Any) -> date:
    """A date, whatever time of day stands behind it."""
    try:
        return datetime.fromisoformat(str(value).strip()).date()
    except ValueError:
        raise SourceDataError(f"{str(value)[:40]!r} is not the date of a cost") from None


def _number(fields: Mapping[str, Any], name: str) -> Decimal | None:
    """The number of that name, exactly, or none; it fits an amount once rounded."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise SourceDataError(f"{name} of a cost is not a number")
    try:
        exact = parse_decimal(str(value))
        to_amount(exact)
    except (ValueError, ArithmeticError):
        raise SourceDataError(f"{name} of a cost is not an amount: {str(value)[:60]!r}") from None
    return exact


def _kept(exact: Decimal | None) -> Decimal | None:
    return None if exact is None else to_amount(exact)


def _environment(fields: Mapping[str, Any], resource_id: str | None) -> str | None:
    """The environment that contains the resource: ``resource.environment.id``, or where older answers have it."""
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
    """A text that says something, shortened where it is absurdly long."""
    return value.strip()[:_MAX_TEXT_LENGTH] or None if isinstance(value, str) else None
