"""Unit costs are sums of charges divided by sums of measurements."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from chargeback.model.money import from_units
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, shown, total

GIB = 2**30


@pytest.mark.parametrize(("per", "measure"), [("gib_in", "bytes_in"), ("gib_out", "bytes_out")])
def test_by_identity(client: Client, everything: Everything, per: str, measure: str) -> None:
    """For each identity, cost and usage equal sums of its rows and measurements."""
    period: dict[str, Any] = {"start_date": everything.days[3], "end_date": everything.days[7]}
    answer = client.answer(f"{everything.base}/unit-costs", **period, per=per, group_by="identity_id", limit=1000)
    days = everything.days[3:8]
    rows = [row for row in everything.chargebacks if row["timestamp"][:10] in days]
    used = client.all_items(f"{everything.base}/usage", **period, measure=measure)
    assert answer["groups"] == len(answer["items"]) == len({row["identity_id"] for row in rows})
    for item in answer["items"]:
        identity = item["dimensions"]["identity_id"]
        own = [row for row in rows if row["identity_id"] == identity]
        pairs = {(row["timestamp"][:10], row["resource_id"]) for row in own}
        measured = [
            each for each in used if each["subject"] == identity and (each["date"], each["resource_id"]) in pairs
        ]
        assert shown(Decimal(item["amount"]) + Decimal(item["excluded_amount"])) == shown(total(own))
        assert item["unit_cost"] == _quotient(item, measured)
    assert answer["missing_days"] == []
    assert shown(total(answer["items"])) == answer["total"]["amount"] == shown(total(rows))


def _quotient(item: Record, measured: list[Record]) -> str | None:
    value = sum(Fraction(each["value"]) for each in measured)
    return shown(from_units(round(Fraction(item["amount"]) * GIB / value * 10**12))) if value else None


def test_of_topics(client: Client, everything: Everything) -> None:
    """Stored bytes and topics are counted per day; identities are ignored for topics."""
    path = f"{everything.base}/unit-costs"
    days = everything.days[-3:]
    rows = [row for row in everything.topics if row["timestamp"][:10] in days]
    topics = client.answer(path, period="3d", per="topic", group_by="cluster_id", identity_id="sa-1")
    assert topics["ignored_filters"] == ["identity_id"]
    assert topics["total"]["amount"] == shown(total(rows))
    named = {(row["timestamp"], row["cluster_resource_id"], row["topic_name"]) for row in rows}
    assert Decimal(topics["total"]["usage"]) == len(named)
    stored = client.answer(path, period="3d", per="gib_stored", group_by="topic_name")
    assert (stored["unit"], stored["measures"]) == ("GiB-day", ["topic_retained_bytes"])
    assert {each["unit_cost"] is None for each in stored["items"]} <= {False, True}


def test_days_without_measurements(client: Client, everything: Everything) -> None:
    """A day that waits for its metrics is listed, and its costs are reported as excluded."""
    answer = client.answer(f"{everything.base}/unit-costs", period="30d")
    (missing,) = answer["missing_days"]
    rows = [row for row in everything.chargebacks if row["timestamp"][:10] == missing]
    assert answer["total"]["excluded_amount"] == shown(total(rows)) != "0.00"
    assert answer["total"]["days"] == len(everything.days) - 1
    whole = Decimal(answer["total"]["amount"]) + total(rows)
    assert shown(whole) == shown(total(everything.chargebacks))


def test_without_usage(client: Client, everything: Everything) -> None:
    """Without usage, the unit cost is null, not zero."""
    answer = client.answer(f"{everything.base}/unit-costs", identity_id="nobody")
    assert (answer["total"]["usage"], answer["total"]["unit_cost"]) == (None, None)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"per": "partition"}, ["per"]),
        ({"group_by": "topic_name"}, ["group_by"]),
        ({"per": "topic", "group_by": "identity_id"}, ["group_by"]),
        ({"group_by": "line_id"}, ["group_by"]),
        ({"limit": "0"}, ["limit"]),
    ],
)
def test_what_is_refused(client: Client, everything: Everything, asked: Record, named: list[str]) -> None:
    """A 400 names every invalid parameter."""
    assert complaints(client.get(f"{everything.base}/unit-costs", params=asked)) == named


def test_without_topic_attribution(client: Client) -> None:
    """If topics are not attributed, unit costs by topic are refused."""
    response = client.get("/api/v1/tenants/plain/unit-costs", params={"per": "topic"})
    assert response.json()["type"].endswith("topic-attribution-unavailable")
