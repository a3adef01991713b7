"""Costs in the provider's current and legacy shapes."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import httpx

from chargeback.demo.bills import cost, legacy_cost
from chargeback.demo.lines import BilledResource, Line
from chargeback.demo.organisation import Organisation
from chargeback.demo.responses import loads
from chargeback.demo.server import DemoServer, ServerOptions
from tests.demo.conftest import TODAY


def test_a_line_has_the_providers_fields() -> None:
    """A line has one day, amounts as decimals, the environment inside the resource, and no empty fields."""
    resource = BilledResource("lkc-1", "orders", "env-1")
    line = Line("KAFKA", "KAFKA_BASE", resource, "Hour", Decimal("1.50"), Decimal(24), discount=100)
    assert cost(line, TODAY, "c-1") == {
        "api_version": "billing/v1",
        "kind": "Cost",
        "id": "c-1",
        "start_date": "2026-11-20",
        "end_date": "2026-11-21",
        "granularity": "DAILY",
        "product": "KAFKA",
        "line_type": "KAFKA_BASE",
        "price": Decimal("1.50"),
        "unit": "Hour",
        "quantity": Decimal(24),
        "original_amount": Decimal(36),
        "discount_amount": Decimal("3.6"),
        "amount": Decimal("32.4"),
        "resource": {"id": "lkc-1", "display_name": "orders", "environment": {"id": "env-1"}},
    }


def test_legacy_shapes_are_served_on_request(organisation: Organisation) -> None:
    """In legacy shapes, costs lack ids, environments are strings, credits have nulls, and dates have times."""
    options = ServerOptions(legacy_shapes=True, null_when_empty=True)
    first = organisation.spec.first_day
    windows = [(first, first + timedelta(days=10)), (TODAY, TODAY + timedelta(days=1))]
    with DemoServer(organisation, options=options) as server:
        rows, empty = (
            loads(
                httpx.get(
                    f"{server.url}/billing/v1/costs",
                    params={"start_date": start.isoformat(), "end_date": end.isoformat()},
                    auth=(server.key, server.secret),
                ).content
            )["data"]
            for start, end in windows
        )
    assert any("id" not in row for row in rows)
    assert any(isinstance((row.get("resource") or {}).get("environment"), str) for row in rows)
    assert any(row["start_date"].endswith(" 00:00:00") for row in rows)
    credit = next(row for row in rows if row["line_type"] == "PROMO_CREDIT")
    assert [credit[name] for name in ("product", "unit", "price", "quantity", "resource")] == [None] * 5
    assert credit["amount"] == Decimal("-12.34")
    assert empty is None


def test_legacy_shapes_keep_the_money(organisation: Organisation) -> None:
    """A legacy row has the same amount as the original row."""
    rows = organisation.cost_rows(organisation.spec.first_day)
    assert [legacy_cost(row, index)["amount"] for index, row in enumerate(rows)] == [row["amount"] for row in rows]
