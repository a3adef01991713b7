"""From a cost row to a billing line."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from chargeback.ecosystems.confluent_cloud.costs import LineContext, read_row, resource_type, to_line
from chargeback.errors import SourceDataError
from chargeback.model.billing import BillingLine

FULL = {
    "id": "c-1",
    "start_date": "2026-11-10",
    "end_date": "2026-11-11",
    "granularity": "DAILY",
    "network_access_type": "INTERNET",
    "product": "KAFKA",
    "line_type": "KAFKA_NETWORK_WRITE",
    "original_amount": Decimal("10.5"),
    "discount_amount": Decimal("0.5"),
    "amount": Decimal("10.0"),
    "price": Decimal("0.05"),
    "quantity": 210,
    "unit": "GB",
    "description": "text",
    "tier_dimensions": {"region": "us-east-1", "provider": "AWS"},
    "resource": {"id": "lkc-1", "display_name": "orders", "environment": {"id": "env-1"}},
}
CONTEXT = LineContext("USD", "org-1")


def line(**changes: Any) -> BillingLine:
    """The line of a full row with some fields changed; a field set to `...` is absent."""
    fields = {name: value for name, value in (FULL | changes).items() if value is not ...}
    return to_line(read_row(fields), CONTEXT)


def test_every_field_finds_its_place() -> None:
    """Nothing that the provider says about a line is lost."""
    assert line() == BillingLine(
        day=date(2026, 11, 10),
        timestamp=datetime(2026, 11, 10, tzinfo=UTC),
        resource_id="lkc-1",
        resource_type="kafka_cluster",
        resource_name="orders",
        environment_id="env-1",
        product_category="KAFKA",
        product_type="KAFKA_NETWORK_WRITE",
        total_cost=Decimal("10.000000000000"),
        currency="USD",
        granularity="daily",
        quantity=Decimal(210),
        unit_price=Decimal("0.05"),
        original_amount=Decimal("10.5"),
        discount_amount=Decimal("0.5"),
        unit="GB",
        network_access_type="INTERNET",
        description="text",
        tier="provider=AWS;region=us-east-1",
        provider_id="c-1",
    )


def test_a_bare_row_is_enough() -> None:
    """Start and an amount make a line; everything else may be missing."""
    bare = to_line(read_row({"start_date": "2026-11-10", "amount": "1"}), CONTEXT)
    assert (bare.resource_id, bare.resource_type) == ("org-1", "organization")
    assert (bare.product_category, bare.product_type) == ("UNKNOWN", "UNKNOWN")


@pytest.mark.parametrize("resource", [..., None, {}, {"id": None}, {"id": ""}, {"id": None, "environment": None}])
def test_a_line_without_a_resource_is_the_organizations(resource: object) -> None:
    """Support, credits and the like belong to the organization as a whole."""
    found = line(resource=resource)
    assert (found.resource_id, found.resource_type) == ("org-1", "organization")


@pytest.mark.parametrize(
    "changes",
    [
        {"resource": {"id": "lkc-1", "environment": {"id": "env-1"}}},
        {"resource": {"id": "lkc-1", "environment": "env-1"}},
        {"resource": {"id": "lkc-1"}, "environment": {"id": "env-1"}},
        {"resource": {"id": "lkc-1", "environment": None}, "environment": "env-1"},
        {"resource": {"id": "env-1"}},
    ],
)
def test_the_environment_wherever_it_stands(changes: dict[str, Any]) -> None:
    """Older organizations get other shapes; an environment that is billed itself is its own."""
    assert line(**changes).environment_id == "env-1"


def test_the_final_amount_is_the_cost() -> None:
    """The discount is not taken off twice."""
    assert line(amount=Decimal("7")).total_cost == 7


@pytest.mark.parametrize("amount", [..., None, ""])
def test_without_a_final_amount_the_discount_is_taken_off(amount: object) -> None:
    """The original amount less the discount, exactly."""
    assert line(amount=amount, original_amount="10.3", discount_amount="0.1").total_cost == Decimal("10.2")
    assert line(amount=amount, discount_amount=None).total_cost == Decimal("10.5")


def test_large_amounts_lose_nothing() -> None:
    """Twenty-six digits before the point and twelve behind it are subtracted exactly."""
    found = line(amount=None, original_amount="9" * 26 + ".000000000003", discount_amount="0.000000000001")
    assert found.total_cost == Decimal("9" * 26 + ".000000000002")


@pytest.mark.parametrize("amount", ["12.5", Decimal("12.5"), "1.25e1", Decimal("1.25E+1"), " 12.5 "])
def test_amounts_as_number_or_text(amount: object) -> None:
    """The provider sends numbers, older answers texts."""
    assert line(amount=amount).total_cost == Decimal("12.5")


def test_signed_amounts() -> None:
    """Refunds and credits are negative."""
    assert line(amount=Decimal("-3.25"), original_amount=Decimal("-3.25")).total_cost == Decimal("-3.25")


@pytest.mark.parametrize(
    ("digits", "kept"),
    [("0.0000000000005", "0"), ("0.0000000000015", "0.000000000002"), ("-0.0000000000025", "-0.000000000002")],
)
def test_more_than_twelve_decimals_are_rounded_once_and_kept_as_text(digits: str, kept: str) -> None:
    """Half-even, and the original digits stay known."""
    found = line(amount=Decimal(digits))
    assert found.total_cost == Decimal(kept)
    assert found.original_text == f"amount={Decimal(digits)}"


def test_twelve_decimals_need_no_text() -> None:
    """An exact amount has no second spelling; superfluous zeros are none."""
    assert line(amount=Decimal("0.12345678901200000")).original_text is None


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": True},
        {"amount": "much"},
        {"amount": "NaN"},
        {"amount": {"value": 1}},
        {"amount": "1e30"},
        {"quantity": "Infinity"},
        {"amount": None, "original_amount": None},
        {"start_date": "soon"},
        {"start_date": None},
        {"end_date": "later"},
    ],
)
def test_what_makes_no_sense_is_an_error(changes: dict[str, Any]) -> None:
    """A row that cannot be understood is never guessed at."""
    with pytest.raises(SourceDataError):
        line(**changes)


def test_a_credit_without_product_has_its_type_as_category() -> None:
    """PROMO_CREDIT comes without product, unit, price and quantity."""
    found = line(product=None, line_type="PROMO_CREDIT", unit=None, price=None, quantity=None, resource=None)
    assert (found.product_category, found.product_type) == ("PROMO_CREDIT", "PROMO_CREDIT")
    assert (found.unit_price, found.quantity, found.unit) == (None, None, None)


def test_an_unknown_type_is_kept() -> None:
    """What nobody has heard of is billed all the same."""
    assert line(line_type="CONTEXT_ENGINE_TABLES").product_type == "CONTEXT_ENGINE_TABLES"


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        ("2026-11-10", "2026-11-11", 1),
        ("2026-11-10 00:00:00", "2026-11-11 00:00:00", 1),
        ("2026-11-10T00:00:00Z", "2026-11-11T00:00:00Z", 1),
        ("2026-11-10", "2026-11-10", 1),
        ("2026-11-10", None, 1),
        ("2026-11-10", "2026-11-25", 15),
    ],
)
def test_the_days_a_row_spans(start: str, end: str | None, days: int) -> None:
    """Dates come with and without a time; a row without a later end is one day."""
    row = read_row(FULL | {"start_date": start, "end_date": end})
    assert (row.days.start, len(row.days)) == (date(2026, 11, 10), days)


@pytest.mark.parametrize(
    ("resource_id", "kind"),
    [
        ("lkc-1", "kafka_cluster"),
        ("lsrc-1", "schema_registry"),
        ("lcc-1", "connector"),
        ("clcc-1", "connector"),
        ("lksqlc-1", "ksqldb_cluster"),
        ("lfcp-1", "flink_compute_pool"),
        ("env-1", "environment"),
        ("x-1", "unknown"),
    ],
)
def test_resource_types_by_prefix(resource_id: str, kind: str) -> None:
    """A billed resource that no listing names still has a type."""
    assert resource_type(resource_id) == kind
