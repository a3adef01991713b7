"""Small bills, usage tables and memberships, written as text."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from chargeback.allocation.day import CalculatedDay, DayCalculator, Evidence
from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.model.billing import BillingLine, billing_table
from chargeback.model.usage import MEMBERS, QUANTITY, USAGE

DAY = date(2026, 1, 31)

POLICIES = parse_policies(
    {
        "CKU": {
            "portions": [
                {"share": "0.70", "try": ["usage(bytes_in + bytes_out)", "even(active)", "even(period)"]},
                {"share": "0.30", "try": ["even(active)", "even(period)"]},
            ]
        },
        "WRITE": {"portions": [{"share": "1", "try": ["usage(bytes_in)", "even(active)", "even(period)"]}]},
        "BASE": {"portions": [{"share": "1", "try": ["even(active)", "even(period)"]}]},
        "CONNECT": {"portions": [{"share": "1", "try": ["owner", "even(active)", "even(period)"]}]},
        "SUPPORT": {"portions": [{"share": "1", "try": ["proportional", "even(period)"]}]},
        "FLINK": {"portions": [{"share": "1", "try": ["usage(cfu)", "even(owners)", "even(active)"]}]},
        "THIRDS": {"portions": [{"share": s, "try": ["even(active)"]} for s in ("0.333333333333", "0.666666666667")]},
    },
    "policies",
)
CATALOGUE = PolicyCatalogue(POLICIES, {})


def _cells(text: str) -> list[list[str]]:
    return [row.split() for row in text.strip().splitlines() if row.strip()]


def bill(text: str) -> pa.Table:
    """Return a bill from lines of ``resource  product type  cost``."""
    lines = [
        BillingLine(DAY, datetime(2026, 1, 31, tzinfo=UTC), resource, "KAFKA", kind, Decimal(cost), "USD")
        for resource, kind, cost in _cells(text)
    ]
    return billing_table(lines, ecosystem="test", tenant_id="t")


def usage(text: str) -> pa.Table:
    """Return usage from lines of ``measure  resource  subject  value``."""
    rows = _cells(text)
    return pa.table(
        {
            "date": [DAY] * len(rows),
            "measure": [row[0] for row in rows],
            "resource_id": [row[1] for row in rows],
            "subject": [row[2] for row in rows],
            "value": pa.array([Decimal(row[3]) for row in rows], pa.decimal128(38, 6)).cast(QUANTITY),
        },
        schema=USAGE,
    )


def members(text: str) -> pa.Table:
    """Return members from lines of ``resource  relation  identity …``."""
    rows = [(row[0], who, row[1]) for row in _cells(text) for who in row[2:]]
    return pa.table(
        {
            "date": [DAY] * len(rows),
            "resource_id": [row[0] for row in rows],
            "identity_id": [row[1] for row in rows],
            "relation": [row[2] for row in rows],
        },
        schema=MEMBERS,
    )


def calculate(evidence: Evidence, catalogue: PolicyCatalogue = CATALOGUE) -> CalculatedDay:
    """Calculate one day with a new engine."""
    calculator = DayCalculator(catalogue)
    try:
        return calculator.calculate(evidence)
    finally:
        calculator.close()


def rows_of(calculated: CalculatedDay) -> list[str]:
    """Return the rows as text: ``resource type portion identity cost_type amount method detail``, in the file's
    order."""
    names = ["resource_id", "product_type", "portion", "identity_id", "cost_type", "amount"]
    names += ["allocation_method", "allocation_detail"]
    return [
        " ".join(str(row[name].normalize() if name == "amount" else row[name]) for name in names)
        for row in calculated.rows.select(names).to_pylist()
    ]
