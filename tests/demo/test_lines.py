"""Billing lines: the provider's arithmetic, and the variety of real bills."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal

from chargeback.demo.lines import gigabytes, lines_of_day
from chargeback.demo.organisation import Organisation
from chargeback.demo.shapes import Json

LINE_TYPES = {
    "KAFKA_STORAGE", "KAFKA_PARTITION", "KAFKA_NETWORK_READ", "KAFKA_NETWORK_WRITE", "KAFKA_BASE", "KAFKA_NUM_CKUS",
    "KAFKA_REST_PRODUCE", "KAFKA_STREAMS", "KSQL_NUM_CSUS", "CONNECT_NUM_TASKS", "CONNECT_THROUGHPUT", "SUPPORT",
    "CLUSTER_LINKING_PER_LINK", "CLUSTER_LINKING_WRITE", "CLUSTER_LINKING_READ", "AUDIT_LOG_READ", "GOVERNANCE_BASE",
    "SCHEMA_REGISTRY", "PROMO_CREDIT", "CUSTOM_CONNECT_NUM_TASKS", "CUSTOM_CONNECT_THROUGHPUT", "NUM_RULES",
    "FLINK_NUM_CFUS", "TABLEFLOW_DATA_PROCESSED", "TABLEFLOW_NUM_TOPICS", "TABLEFLOW_STORAGE", "USM_CONNECTED_NODE",
    "CONTEXT_ENGINE_TABLES",
}  # fmt: skip


def _rows(organisation: Organisation) -> list[Json]:
    first = organisation.spec.first_day
    return [row for offset in range(13) for row in organisation.cost_rows(first + timedelta(days=offset))]


def test_amounts_follow_from_quantity_price_and_discount(organisation: Organisation) -> None:
    """The original amount is quantity × price to ten decimals; the amount is exactly original − discount."""
    for row in _rows(organisation):
        assert row["amount"] == row["original_amount"] - row.get("discount_amount", 0)
        if "price" in row:
            assert abs(row["quantity"] * row["price"] - row["original_amount"]) <= Decimal("5E-11")
        assert -row["original_amount"].as_tuple().exponent <= 10


def test_bills_hold_every_kind_of_line(organisation: Organisation) -> None:
    """Every known line type appears, and an unknown one."""
    assert {row["line_type"] for row in _rows(organisation)} == LINE_TYPES


def test_bills_hold_the_oddities_of_real_ones(organisation: Organisation) -> None:
    """Bills have tiers, refunds, credits without price, discounts, equal lines, and lines without resource or
    environment."""
    rows = _rows(organisation)
    places = Counter((row["start_date"], row["line_type"], row.get("resource", {}).get("id")) for row in rows)
    assert max(places.values()) >= 3
    assert len({row["id"] for row in rows}) < len(rows)
    assert any(row["amount"] < 0 and row["line_type"] != "PROMO_CREDIT" for row in rows)
    assert any("price" not in row and "resource" not in row and row["amount"] < 0 for row in rows)
    assert any(row.get("discount_amount", 0) > 0 for row in rows)
    assert any(row.get("resource", {"environment": ""})["environment"] is None for row in rows)
    assert any(row.get("tier_dimensions") for row in rows)
    contents = Counter(tuple((name, str(value)) for name, value in row.items() if name != "id") for row in rows)
    assert max(contents.values()) == 2


def test_a_deleted_cluster_is_billed_until_its_end(organisation: Organisation) -> None:
    """The sandbox that is deleted on the tenth day has lines up to that day, and none later."""
    sandbox = next(item for item in organisation.inventory.clusters if item.deleted is not None)
    assert sandbox.deleted is not None
    last = sandbox.deleted.date()
    billed = {
        day: any(line.resource is not None and line.resource.id == sandbox.id for line in lines)
        for day in (last, last + timedelta(days=1))
        for lines in [lines_of_day(organisation.traffic, day)]
    }
    assert billed == {last: True, last + timedelta(days=1): False}


def test_gigabytes_are_exact() -> None:
    """Bytes are converted to decimal gigabytes with nine decimals."""
    assert gigabytes(1) == Decimal("0.000000001")
    assert gigabytes(123_456_789_012_345) == Decimal("123456.789012345")
