"""The list of billing lines."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.datasets import BILLING_LINES
from chargeback.store.queries.paging import Page
from chargeback.store.queries.selection import Selection, equal
from tests.support.facts import line, write_lines
from tests.support.readers import Read

DAY = date(2026, 1, 1)
WINDOW = instants(DAY, DAY)


def test_a_line_is_shown_as_billed(read: Read, facts: FactTables) -> None:
    """Unknown quantities are null, amounts are exact texts, and other attributes are metadata."""
    write_lines(facts, [line(DAY, "12.340", quantity=Decimal("1E+3"), tier="tier=1", description='a "b"')])
    (item,), total = read(lambda reader: reader.list_rows(BILLING_LINES, Selection(WINDOW), Page(0, 10)))
    line_id = item["metadata"].pop("line_id")
    assert total == 1
    assert len(line_id) == 32
    assert item == {
        "ecosystem": "test_cloud",
        "tenant_id": "acme-id",
        "timestamp": "2026-01-01T00:00:00Z",
        "resource_id": "lkc-1",
        "product_category": "KAFKA",
        "product_type": "KAFKA_NUM_CKUS",
        "quantity": "1000.00",
        "unit_price": None,
        "total_cost": "12.34",
        "currency": "USD",
        "granularity": "daily",
        "metadata": {"description": 'a "b"', "tier": "tier=1"},
    }


def test_lines_are_narrowed_and_ordered(read: Read, facts: FactTables) -> None:
    """Lines are filtered by time, resource and type, and the total counts the filtered ones."""
    write_lines(facts, [line(DAY, "1", resource=r, product=p) for r in ("b", "a") for p in ("Y", "X")])
    items, _ = read(lambda reader: reader.list_rows(BILLING_LINES, Selection(WINDOW), Page(0, 10)))
    assert [(i["resource_id"], i["product_type"]) for i in items] == [("a", "X"), ("a", "Y"), ("b", "X"), ("b", "Y")]
    only = Selection(WINDOW, equal(resource_id="b", product_type="Y"))
    items, total = read(lambda reader: reader.list_rows(BILLING_LINES, only, Page(0, 10)))
    assert [(i["resource_id"], i["product_type"]) for i in items] == [("b", "Y")]
    assert total == 1
