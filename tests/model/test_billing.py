"""A billing line is identified by its content, not by the ids, names or order of a response."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model import billing, chargeback, usage
from chargeback.model.billing import BillingLine, billing_table, fingerprint, line_ids

DAY = date(2026, 1, 31)


def line(resource: str = "lkc-1", cost: str = "1.5", **more: object) -> BillingLine:
    """Return a small line of the day."""
    known = BillingLine(
        day=DAY,
        timestamp=datetime(2026, 1, 31, tzinfo=UTC),
        resource_id=resource,
        product_category="KAFKA",
        product_type="KAFKA_BASE",
        total_cost=Decimal(cost),
        currency="USD",
    )
    return replace(known, **more)  # type: ignore[arg-type]


lines = st.lists(
    st.builds(line, st.sampled_from(["lkc-1", "lkc-2"]), st.sampled_from(["1.5", "1.50", "-2", "0"])), max_size=8
)


@given(lines, st.randoms())
def test_ids_do_not_depend_on_the_order_of_the_answer(bill: list[BillingLine], chance: object) -> None:
    """The same bill in another order has the same ids and the same fingerprint."""
    shuffled = sorted(bill, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert sorted(line_ids(bill)) == sorted(line_ids(shuffled))
    assert fingerprint(bill) == fingerprint(shuffled)


@given(lines)
def test_equal_lines_stay_two(bill: list[BillingLine]) -> None:
    """Every line has its own id, even if two are equal."""
    assert len(set(line_ids(bill))) == len(bill)


def test_what_does_not_matter_does_not_change_the_fingerprint() -> None:
    """Provider ids, names, descriptions and the format of numbers do not change the fingerprint."""
    same = line(cost="1.500", provider_id="x", resource_name="y", description="z", original_text="1.50000000000000")
    assert fingerprint([line()]) == fingerprint([same])


def test_what_matters_changes_the_fingerprint() -> None:
    """Amounts, quantities, tiers and environments change the fingerprint."""
    for change in (
        {"total_cost": Decimal("1.51")},
        {"quantity": Decimal(1)},
        {"tier": "provider=aws"},
        {"environment_id": "env-1"},
        {"discount_amount": Decimal("0.1")},
    ):
        assert fingerprint([line()]) != fingerprint([replace(line(), **change)])


def test_table_is_ordered_and_complete() -> None:
    """The table of a day has all lines in order, and environments known only from the inventory."""
    table = billing_table(
        [line("lkc-2"), line("lkc-1", environment_id="env-1")],
        ecosystem="e",
        tenant_id="t",
        environments={"lkc-2": "env-2"},
    )
    assert table.schema == billing.BILLING
    assert table["resource_id"].to_pylist() == ["lkc-1", "lkc-2"]
    assert table["environment_id"].to_pylist() == ["env-1", "env-2"]
    assert table["date"].to_pylist() == [DAY, DAY]


def test_no_float_ever_holds_money() -> None:
    """No column of any schema is a binary floating point number."""
    schemas = [billing.BILLING, usage.USAGE, usage.MEMBERS, chargeback.CHARGEBACKS, chargeback.DIMENSIONS]
    assert not [field for schema in schemas for field in schema if pa.types.is_floating(field.type)]
