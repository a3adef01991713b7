"""Costs over HTTP."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from chargeback.model.days import ONE_DAY
from chargeback.reports.costs import CostsAnswer
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, known, parameters_of
from tests.support.facts import Share, days_from, write_shares

URL = f"{ACME}/costs"
WEEK = {"start_date": str(LAST - timedelta(days=4)), "end_date": str(LAST)}


def test_everything_at_once(client: httpx.Client) -> None:
    """The response has the documented fields, with sums, a breakdown, and every part that the request names."""
    body = client.get(
        URL, params=WEEK | {"by": ["identity_id", "resource_id"], "include": "issues,days,forecast"}
    ).json()
    CostsAnswer.model_validate(body)
    assert body["total"] == {
        "amount": "50.00",
        "usage": "26.25",
        "shared": "23.75",
        "rows": 15,
        "unallocated": "17.50",
        "previous": "0.00",
        "previous_unallocated": "0.00",
    }
    assert body["times"] == [str(day) for day in DAYS]
    assert body["amounts"] == ["10.00"] * 5
    assert body["previous_amounts"] == [None] * 5
    assert (body["days_with_costs"], body["compared_with"]["days_with_costs"]) == (5, 0)
    identities, resources = body["breakdowns"]
    assert [(item["value"], item["amount"]) for item in identities["items"]] == [
        ("sa-1", "26.25"),
        ("UNALLOCATED", "17.50"),
        ("sa-2", "6.25"),
    ]
    assert identities["items"][1]["name"] == "Unallocated"
    assert identities["items"][0]["amounts"] == ["5.25"] * 5
    assert resources["items"][0]["amounts"] == []
    (issue,) = body["issues"]
    assert issue == {
        "reason": "NO_IDENTITIES_LOCATED",
        "unallocated": True,
        "amount": "17.50",
        "rows": 5,
        "resources": 1,
    }
    assert [day["state"] for day in body["days"]] == ["equal"] * 5
    assert body["forecast"] is None  # five days are not enough
    assert body["currency"] == "USD"


def test_only_what_is_asked_for(client: httpx.Client) -> None:
    """Parts that the request does not name are null, and so is the comparison if it is off."""
    body = client.get(URL, params=WEEK | {"compare": "none"}).json()
    assert [body[part] for part in ("issues", "days", "forecast", "topics", "compared_with")] == [None] * 5
    assert body["previous_amounts"] == []
    assert body["total"]["previous"] is None
    assert body["breakdowns"][0]["items"][0]["previous"] is None
    assert body["breakdowns"][0]["movers"] == []


def test_the_last_thirty_days_unless_asked_otherwise(client: httpx.Client) -> None:
    """The default is the thirty days up to the last calculated one."""
    body = client.get(URL).json()
    assert (body["end_date"], len(body["times"])) == (str(LAST), 30)
    assert body["compared_with"]["end_date"] == str(LAST - timedelta(days=30))


def test_others_and_movers(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Items and others sum to the total of both periods; movers are the values that changed most."""
    known(own_store, identities=["sa-1"])
    before = [share for day in days_from(DAYS[0] - timedelta(days=5), 5) for share in [Share(day, "sa-9", "100")]]
    write_shares(own_store.facts, before)
    body = own_client.get(URL, params=WEEK | {"top": 1}).json()
    (breakdown,) = body["breakdowns"]
    assert breakdown["items"][0]["value"] == "sa-1"
    assert breakdown["other"] == {"count": 3, "amount": "23.75", "previous": "500.00", "amounts": ["4.75"] * 5}
    assert breakdown["movers"] == [{"value": "sa-9", "name": None, "amount": "0.00", "previous": "500.00"}]
    assert body["previous_amounts"] == ["100.00"] * 5
    assert body["compared_with"]["days_with_costs"] == 5


def test_the_usual_breakdowns(own_client: httpx.Client, own_store: TenantStore) -> None:
    """``usual`` means some columns, a tag that covers at least half of the cost, and the first cost category, with the
    names of its values; requested breakdowns keep their order around these, and there are at most six."""

    def breakdowns(*by: str) -> list[str]:
        found = own_client.get(URL, params={"by": by}).json()["breakdowns"]
        assert [bool(each["items"][0]["amounts"]) for each in found] == [True] + [False] * (len(found) - 1)
        return [each["by"] for each in found]

    columns = ["identity_id", "environment_id", "product_type", "resource_id"]
    assert breakdowns("usual") == columns
    assert breakdowns("cost_type", "usual") == ["cost_type", *columns]
    known(own_store, identities=["sa-1"])
    tag = {"tag_key": "team", "tag_value": "shop"}
    assert own_client.post(f"{ACME}/entities/identity/sa-1/tags", json=tag).is_success
    assert breakdowns("usual", "ecosystem") == ["tag:team", *columns, "ecosystem"]
    rules = [{"match": {"identity": ["sa-1"]}, "assign": "shop"}]
    document = {"default": "rest", "values": {"shop": {"name": "The shop"}, "rest": {}}, "rules": rules}
    for key in ("unit", "centre"):
        made = own_client.put(f"{ACME}/cost-categories/{key}", json={"document": document})
        assert made.is_success, made.text
    assert breakdowns("usual", "ecosystem") == ["category:centre", "tag:team", *columns]
    first, *_ = own_client.get(URL, params={"by": "usual"}).json()["breakdowns"]
    assert [(item["value"], item["name"]) for item in first["items"]] == [("shop", "The shop"), ("rest", None)]
    assert own_client.get(ACME).json()["category_keys"] == ["centre", "unit"]


def test_weeks_and_months(client: httpx.Client) -> None:
    """The sum is the same for every unit of time."""
    for unit in ("day", "week", "month"):
        body = client.get(URL, params={"period": "60d", "time_bucket": unit, "timezone": "America/New_York"}).json()
        assert sum(float(amount) for amount in body["amounts"]) == 50
        assert body["total"]["amount"] == "50.00"


def test_days_are_the_whole_tenant(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Filters do not apply to the reconciliation; a day has its difference or the reason why it has none."""
    write_shares(own_store.facts, [Share(LAST, "sa-1", "5.26"), Share(LAST, "sa-2", "4.75", portion=1)])
    window = {"start_date": str(LAST), "end_date": str(LAST + 2 * ONE_DAY)}
    body = own_client.get(URL, params=window | {"include": "days", "identity_id": "nobody"}).json()
    assert [(day["state"], day["billed"], day["charged"], day["difference"]) for day in body["days"]] == [
        ("differs", "10.00", "10.01", "0.01"),
        ("pending", "0.00", "0.00", "0.00"),
        ("none", "0.00", "0.00", "0.00"),
    ]
    assert body["total"]["amount"] == "0.00"


@pytest.mark.parametrize(
    ("parameters", "wrong"),
    [
        ({"by": "timestamp"}, ["by"]),
        ({"by": ["identity_id"] * 7}, ["by"]),
        ({"by": "product_type", "series": "identity_id"}, ["series"]),
        ({"series": "product_type"}, ["series"]),
        ({"by": "usual", "series": "usual"}, ["series"]),
        ({"by": "usual", "basis": "posted"}, ["by"]),
        ({"top": "0"}, ["top"]),
        ({"top": "51"}, ["top"]),
        ({"compare": "last"}, ["compare"]),
        ({"compare": "2026-02-30..2026-03-01"}, ["compare"]),
        ({"include": "issues,everything"}, ["include"]),
        ({"time_bucket": "hour"}, ["time_bucket"]),
        ({"line_id": "x", "not.line_id": "x"}, ["line_id", "not.line_id"]),
        ({"period": "30d", "end_date": "2026-01-01"}, ["period"]),
        ({"start_date": "2000-01-01"}, ["time_bucket"]),
    ],
)
def test_what_is_wrong_is_refused(client: httpx.Client, parameters: dict[str, str], wrong: list[str]) -> None:
    """A 400 names every invalid parameter."""
    assert parameters_of(client.get(URL, params=parameters)) == wrong


@pytest.mark.extensive
@pytest.mark.parametrize("compare", ["previous", "year", "0001-01-01..0001-01-02"])
def test_extreme_periods_are_harmless(client: httpx.Client, compare: str) -> None:
    """A comparison with days before the start of the calendar is left out or refused."""
    extreme = {"start_date": "0001-01-01", "end_date": "9999-12-31", "time_bucket": "month", "compare": compare}
    assert client.get(URL, params=extreme).status_code == 400
    early = extreme | {"end_date": "1971-01-01"}
    assert client.get(URL, params=early).status_code == (400 if ".." in compare else 200)
