"""Sums in another currency use the same rates everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, shown

RATE = Decimal("0.85137")
CONVERSION = {"billed_currency": "USD", "rates": {"2026-01": "0.85137"}}


def plus(amounts: Iterable[str]) -> Decimal:
    """Return the exact sum."""
    return sum(map(Decimal, amounts), Decimal(0))


def converted(amount: str) -> str:
    """Convert a USD amount of January to EUR."""
    return shown(Decimal(amount) * RATE)


@pytest.mark.parametrize("path", ["chargebacks/aggregate", "topic-attributions/aggregate"])
def test_aggregates(client: Client, everything: Everything, path: str) -> None:
    """Each bucket, and the total, is the amount in the bill's currency times the rate."""
    ours, theirs = (
        client.answer(f"{everything.base}/{path}", period="8d", **asked) for asked in ({}, {"currency": "EUR"})
    )
    assert (theirs["currency"], theirs["conversion"]) == ("EUR", CONVERSION)
    assert theirs["total_amount"] == converted(ours["total_amount"])
    for our, their in zip(ours["buckets"], theirs["buckets"], strict=True):
        assert their["total_amount"] == converted(our["total_amount"])
        assert their | our == our


def test_one_total_on_every_page(client: Client, everything: Everything) -> None:
    """Costs, aggregates and unit costs have the same total, and the parts of each sum to it."""
    asked: dict[str, Any] = {"period": "8d", "currency": "EUR"}
    costs = client.answer(
        f"{everything.base}/costs", **asked, by=["identity_id", "tag:team"], include="issues,days,topics"
    )
    aggregate = client.answer(f"{everything.base}/chargebacks/aggregate", **asked, time_bucket="month")
    whole = aggregate["total_amount"]
    assert costs["total"]["amount"] == whole
    assert shown(plus(costs["amounts"])) == whole
    assert shown(plus(day["charged"] for day in costs["days"])) == whole
    for breakdown in costs["breakdowns"]:
        parts = [*breakdown["items"], *([breakdown["other"]] if breakdown["other"] else [])]
        assert shown(plus(each["amount"] for each in parts)) == whole
    units = client.answer(f"{everything.base}/unit-costs", **asked)["total"]
    assert shown(Decimal(units["amount"]) + Decimal(units["excluded_amount"])) == whole
    topics = client.answer(f"{everything.base}/topics", **asked)
    assert (topics["total"], topics["conversion"]) == (costs["topics"]["total"], CONVERSION)


def test_the_currency_of_the_bill(client: Client, everything: Everything) -> None:
    """The currency of the bill is accepted and converts nothing."""
    path = f"{everything.base}/chargebacks/aggregate"
    assert client.answer(path, currency="USD") == client.answer(path)


def test_files_name_the_rates(client: Client, everything: Everything) -> None:
    """Files have the same columns, so the rates are in a header."""
    for name in ("costs", "topics", "unit-costs", "chargebacks/aggregate", "topic-attributions/aggregate"):
        response = client.get(f"{everything.base}/{name}.csv", params={"period": "2d", "currency": "EUR"})
        assert response.status_code == 200
        assert response.headers["X-Currency-Rates"] == "USD to EUR: 2026-01=0.85137"


@pytest.mark.parametrize("name", ["costs", "series", "topics", "flow", "unit-costs", "chargebacks/aggregate"])
def test_what_cannot_be_converted(client: Client, everything: Everything, name: str) -> None:
    """An unknown currency and a month without a rate are refused; the message names them."""
    for currency, message in (
        ("CHF", "should be a currency of this tenant: USD, EUR, GBP"),
        ("GBP", "has no rate for 2026-01; add them to currencies.GBP of the tenant"),
    ):
        response = client.get(f"{everything.base}/{name}", params={"currency": currency})
        assert complaints(response) == ["currency"]
        assert response.json()["errors"][0]["message"] == message
