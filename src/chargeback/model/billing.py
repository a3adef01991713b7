"""Billing lines: the provider's charges, unchanged."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final

import pyarrow as pa

from chargeback.model.money import canonical

MONEY = pa.decimal128(38, 12)
INSTANT = pa.timestamp("us", tz="UTC")

#: One row per source billing line. ``quantity`` and ``unit_price`` are null if the provider gave none;
#: ``original_text`` has the provider's digits if an amount had more than twelve decimals.
BILLING = pa.schema(
    [
        pa.field("date", pa.date32(), nullable=False),
        pa.field("line_id", pa.string(), nullable=False),
        pa.field("ecosystem", pa.string(), nullable=False),
        pa.field("tenant_id", pa.string(), nullable=False),
        pa.field("timestamp", INSTANT, nullable=False),
        pa.field("resource_id", pa.string(), nullable=False),
        pa.field("environment_id", pa.string()),
        pa.field("product_category", pa.string(), nullable=False),
        pa.field("product_type", pa.string(), nullable=False),
        pa.field("quantity", MONEY),
        pa.field("unit_price", MONEY),
        pa.field("original_amount", MONEY),
        pa.field("discount_amount", MONEY),
        pa.field("total_cost", MONEY, nullable=False),
        pa.field("currency", pa.string(), nullable=False),
        pa.field("granularity", pa.string(), nullable=False),
        pa.field("unit", pa.string()),
        pa.field("resource_name", pa.string()),
        pa.field("network_access_type", pa.string()),
        pa.field("description", pa.string()),
        pa.field("tier", pa.string()),
        pa.field("provider_id", pa.string()),
        pa.field("original_text", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class BillingLine:
    """One line of a bill for one UTC day (or one hour of it, if costs are constructed hourly).

    ``tier`` is the provider's tier dimensions as ``key=value`` pairs, sorted and joined with ``;``.
    ``resource_type`` is only for the inventory, which has a row even for a billed resource that no listing names.
    ``ecosystem`` is that of an additional bill, see :func:`with_bill`; the tenant's own lines have none.
    """

    day: date
    timestamp: datetime
    resource_id: str
    product_category: str
    product_type: str
    total_cost: Decimal
    currency: str
    granularity: str = "daily"
    quantity: Decimal | None = None
    unit_price: Decimal | None = None
    original_amount: Decimal | None = None
    discount_amount: Decimal | None = None
    environment_id: str | None = None
    resource_name: str | None = None
    resource_type: str = "unknown"
    unit: str | None = None
    network_access_type: str | None = None
    description: str | None = None
    tier: str | None = None
    provider_id: str | None = None
    original_text: str | None = None
    ecosystem: str | None = None

    def content(self) -> str:
        """Return the content by which two lines count as equal: without ids of the response, names or descriptions."""
        return "\x1f".join(
            (
                self.timestamp.isoformat(),
                self.granularity,
                self.product_category,
                self.product_type,
                self.resource_id,
                self.environment_id or "",
                canonical(self.unit_price),
                canonical(self.quantity),
                canonical(self.original_amount),
                canonical(self.discount_amount),
                canonical(self.total_cost),
                self.currency,
                self.unit or "",
                self.network_access_type or "",
                self.tier or "",
            )
        )


_BILL: Final = "bill="
#: The name of the additional bill of a line, as SQL over its tier; of the tenant's own bill the empty text.
BILL_NAME_SQL: Final = f"coalesce(regexp_extract(tier, '(?:^|;){_BILL}([^;]*)', 1), '')"


def with_bill(line: BillingLine, name: str) -> BillingLine:
    """Return a line of the additional bill of that name, which its tier says.

    >>> from datetime import UTC
    >>> midnight = datetime(2026, 1, 31, tzinfo=UTC)
    >>> line = BillingLine(midnight.date(), midnight, "r", "c", "t", Decimal(1), "USD", tier="x=1")
    >>> with_bill(line, "aws").tier, bill_of(with_bill(line, "aws")), bill_of(line)
    ('bill=aws;x=1', 'aws', None)
    """
    parts = [part for part in (line.tier or "").split(";") if part]
    return replace(line, tier=";".join(sorted([f"{_BILL}{name}", *parts])))


def bill_of(line: BillingLine) -> str | None:
    """Return the name of the additional bill that a line is of, or None for the tenant's own."""
    parts = (line.tier or "").split(";")
    return next((part.removeprefix(_BILL) for part in parts if part.startswith(_BILL)), None)


_COVERAGE: Final = re.compile(r"measured at (\d+) of (\d+) steps")


def partly_measured(steps: int, expected: int) -> str:
    """Return the description of a line whose quantity was measured only at some steps of its day."""
    return f"measured at {steps} of {expected} steps"


def coverage_of(line: BillingLine) -> Fraction:
    """Return the part of the day over which a line was measured, from its description; by default the whole day."""
    found = _COVERAGE.search(line.description or "")
    return Fraction(int(found[1]), int(found[2])) if found and int(found[2]) else Fraction(1)


def line_ids(lines: Iterable[BillingLine]) -> list[str]:
    """Return an id per line of one day: its content plus its ordinal among equal lines.

    The ids of a day do not depend on the window of the request or the order of the lines, and equal lines remain
    distinct.
    """
    seen: Counter[str] = Counter()
    ids = []
    for line in lines:
        content = line.content()
        ids.append(_digest(f"{content}\x1e{seen[content]}"))
        seen[content] += 1
    return ids


def fingerprint(lines: Iterable[BillingLine]) -> str:
    """Return a short text of the multiset of a day's line contents: it is equal exactly if no content has changed."""
    return _digest("\x1d".join(sorted(line.content() for line in lines)))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def billing_table(
    lines: Sequence[BillingLine], *, ecosystem: str, tenant_id: str, environments: Mapping[str, str] | None = None
) -> pa.Table:
    """Return the lines of one day as a table of schema :data:`BILLING`, ordered by (timestamp, resource, type, line).

    ``environments`` maps resources to environments, for lines without one.
    """
    ordered = sorted(
        zip(lines, line_ids(lines), strict=True),
        key=lambda pair: (pair[0].timestamp, pair[0].resource_id, pair[0].product_type, pair[1]),
    )
    computed = {"date", "line_id", "ecosystem", "tenant_id", "environment_id"}
    columns = {name: [getattr(line, name) for line, _ in ordered] for name in BILLING.names if name not in computed}
    columns["date"] = [line.day for line, _ in ordered]
    known = environments or {}
    columns["environment_id"] = [line.environment_id or known.get(line.resource_id) for line, _ in ordered]
    columns["line_id"] = [line_id for _, line_id in ordered]
    columns["ecosystem"] = [line.ecosystem or ecosystem for line, _ in ordered]
    columns["tenant_id"] = [tenant_id] * len(ordered)
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in BILLING}, schema=BILLING)
