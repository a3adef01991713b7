"""Series are the sums of aggregates as flat rows, with exact numbers."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

import pytest

from chargeback.model.money import parse_json
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, shown


def series(client: Client, everything: Everything, **asked: Any) -> Any:
    """Return the response with exact numbers."""
    path = f"{everything.base}/series"
    return parse_json(client.get(path, params=asked).content)


@pytest.mark.parametrize("by", ["product_category", "identity_id", "tag:team"])
@pytest.mark.parametrize("unit", ["day", "week", "month"])
def test_rows_add_up_to_the_aggregate(client: Client, everything: Everything, by: str, unit: str) -> None:
    """Values with a name have the amounts of the aggregate, and the rows of each time sum to its total."""
    asked = {"period": "12d", "time_bucket": unit, "timezone": "Europe/Berlin"}
    found = series(client, everything, group_by=by, top=2, **asked)
    expected = client.answer(f"{everything.base}/chargebacks/aggregate", group_by=by, **asked)
    by_value = {
        (each["time_bucket"], each["dimensions"][by]): Decimal(each["total_amount"]) for each in expected["buckets"]
    }
    times: defaultdict[str, Decimal] = defaultdict(Decimal)
    for (time, _), amount in by_value.items():
        times[time] += amount
    drawn: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in found["rows"]:
        drawn[row["time"][:10]] += row["amount"]
        assert row["time"].endswith("T00:00:00+01:00")
        if row["value"] is not None:
            assert row["amount"] == by_value.get((row["time"][:10], row["value"]), 0)
    assert {time: amount for time, amount in drawn.items() if amount} == dict(times)
    assert shown(found["total"]) == expected["total_amount"]
    assert len({row["name"] for row in found["rows"]}) <= 3


def test_without_a_column(client: Client, everything: Everything) -> None:
    """There is one row for each time bucket, including days without costs."""
    days = {"start_date": str(everything.days[-2]), "end_date": "2026-12-31"}
    found = series(client, everything, **days)
    assert {row["name"] for row in found["rows"]} == {"total"}
    assert shown(sum((row["amount"] for row in found["rows"]), Decimal(0))) == shown(found["total"])
    assert found["rows"][-1]["amount"] == 0


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"group_by": "a"}, ["group_by"]),
        ({"group_by": ["resource_id", "identity_id"]}, ["group_by"]),
        ({"top": "0", "time_bucket": "hour"}, ["time_bucket", "top"]),
        ({"start_date": "2000-01-01", "end_date": "2026-01-01"}, ["time_bucket"]),
    ],
)
def test_what_it_refuses(client: Client, everything: Everything, params: dict[str, Any], wrong: list[str]) -> None:
    """A 400 names every invalid parameter."""
    assert complaints(client.get(f"{everything.base}/series", params=params)) == wrong
