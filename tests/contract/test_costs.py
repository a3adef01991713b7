"""Costs agree with the lists and the aggregates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from hypothesis import given, seed, settings
from hypothesis import strategies as st

from tests.contract.records import Client, Everything, Record, shown, total
from tests.contract.test_aggregation import COLUMNS
from tests.support.laws import examples

ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia")
BY = [*COLUMNS, "allocation_detail", "tag:team"]
FILTERS: list[dict[str, Any]] = [
    {},
    {"product_category": ["KAFKA", "FLINK"]},
    {"not.product_category": "KAFKA"},
    {"tag:team": "UNTAGGED"},
    {"not.identity_id": "UNALLOCATED", "cost_type": "usage"},
    {"environment_id": ""},
]


@given(
    by=st.lists(st.sampled_from(BY), min_size=1, max_size=6, unique=True),
    filters=st.sampled_from(FILTERS),
    zone=st.sampled_from(ZONES),
    unit=st.sampled_from(["day", "week", "month"]),
    length=st.integers(0, 12),
    top=st.sampled_from([1, 3, 50]),
)
@seed(11)
@settings(max_examples=examples(30), database=None)
def test_costs_are_the_aggregates(
    client: Client,
    everything: Everything,
    by: list[str],
    filters: dict[str, Any],
    zone: str,
    unit: str,
    length: int,
    top: int,
) -> None:
    """Totals, breakdowns, series and the previous period equal the aggregate exactly."""
    period = {"start_date": everything.days[-1 - min(length, 10)], "end_date": everything.days[-1], "timezone": zone}
    params = period | filters | {"by": by, "time_bucket": unit, "top": top}
    answer = client.answer(f"{everything.base}/costs", **params)
    other = answer["compared_with"]
    before = {"start_date": other["start_date"], "end_date": other["end_date"], "timezone": zone}
    for breakdown in answer["breakdowns"]:
        sums, befores = (
            _aggregated(client, everything, dates | filters, breakdown["by"], unit) for dates in (period, before)
        )
        _check_breakdown(answer, breakdown, sums, befores)
    assert answer["total"]["previous"] == shown(_plus(_plus(each.values()) for each in befores.values()))


def _plus(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))


def _aggregated(
    client: Client, everything: Everything, params: Record, by: str, unit: str
) -> dict[str | None, dict[str, Decimal]]:
    """Return a map from value and time bucket to amount."""
    path = f"{everything.base}/chargebacks/aggregate"
    sums: dict[str | None, dict[str, Decimal]] = defaultdict(dict)
    for bucket in client.answer(path, **params, group_by=by, time_bucket=unit)["buckets"]:
        sums[bucket["dimensions"][by]][bucket["time_bucket"]] = Decimal(bucket["total_amount"])
    return sums


def _check_breakdown(
    answer: Record,
    breakdown: Record,
    sums: dict[str | None, dict[str, Decimal]],
    befores: dict[str | None, dict[str, Decimal]],
) -> None:
    others = breakdown["other"] or {"count": 0, "amount": "0.00", "previous": "0.00", "amounts": []}
    named = [item["value"] for item in breakdown["items"]]
    for item in breakdown["items"]:
        value = item["value"]
        assert item["amount"] == shown(_plus(sums.get(value, {}).values()))
        assert item["previous"] == shown(_plus(befores.get(value, {}).values()))
        if item["amounts"]:
            assert item["amounts"] == [shown(sums.get(value, {}).get(t, Decimal(0))) for t in answer["times"]]
    assert len(named) + others["count"] == len(sums.keys() | befores.keys())
    whole = _plus(_plus(each.values()) for each in sums.values())
    assert answer["total"]["amount"] == shown(whole)
    assert shown(total(breakdown["items"]) + Decimal(others["amount"])) == shown(whole)
    assert answer["amounts"] == [
        shown(_plus(each.get(time, Decimal(0)) for each in sums.values())) for time in answer["times"]
    ]


def test_every_part(client: Client, everything: Everything) -> None:
    """Issues equal the list, days equal the bill and the chargebacks, and topics equal their aggregate."""
    params = {"period": "10d", "include": "issues,days,forecast,topics", "top": 50, "by": "identity_id"}
    answer = client.answer(f"{everything.base}/costs", **params)
    days = everything.days[-10:]
    rows = [row for row in everything.chargebacks if row["timestamp"][:10] in days]
    issues = client.all_items(f"{everything.base}/chargebacks/allocation-issues", period="10d")
    assert shown(total(answer["issues"])) == shown(total(issues, "total_cost"))
    assert sum(issue["rows"] for issue in answer["issues"]) == sum(issue["row_count"] for issue in issues)
    assert [each["date"] for each in answer["days"]] == days
    assert {each["state"] for each in answer["days"]} == {"equal"}
    for each in answer["days"]:
        lines = [line for line in everything.billing if line["timestamp"][:10] == each["date"]]
        charged = [row for row in rows if row["timestamp"][:10] == each["date"]]
        assert (each["billed"], each["charged"]) == (shown(total(lines, "total_cost")), shown(total(charged)))
    topics = client.answer(f"{everything.base}/topic-attributions/aggregate", period="10d", time_bucket="month")
    assert answer["topics"]["total"] == topics["total_amount"]
    assert answer["forecast"] is None  # a few days are not enough
    names = {each["identity_id"]: each["display_name"] for each in everything.identities}
    for item in answer["breakdowns"][0]["items"]:
        assert item["name"] == names[item["value"]]


def test_topics_ignore_what_they_do_not_know(client: Client, everything: Everything) -> None:
    """The response names the filters that topics ignore; other filters apply."""
    path = f"{everything.base}/costs"
    some = {"include": "topics", "identity_id": "sa-1", "not.tag:team": "x", "product_type": "KAFKA_STORAGE"}
    topics = client.answer(path, **some)["topics"]
    assert topics["ignored_filters"] == ["identity_id", "tag:team"]
    aggregate = client.answer(
        f"{everything.base}/topic-attributions/aggregate", period="30d", product_type="KAFKA_STORAGE"
    )
    assert topics["total"] == aggregate["total_amount"]


def test_a_tenant_without_topics_or_days(client: Client) -> None:
    """Without topics and days, the response has all fields and is empty."""
    answer = client.answer("/api/v1/tenants/plain/costs", include="issues,days,forecast,topics")
    assert (answer["total"]["amount"], answer["topics"], answer["forecast"]) == ("0.00", None, None)
    assert {each["state"] for each in answer["days"]} == {"none"}
