"""Chargeback rows over HTTP."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time

import httpx

from chargeback.api.routes.chargebacks import AllocationIssue, ChargebackRow, Dimension
from chargeback.model.days import ONE_DAY
from chargeback.reports.answers import PageOf
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, known
from tests.support.clock import FixedClock
from tests.support.serving import client_of, services_for


def test_a_page_of_rows(client: httpx.Client) -> None:
    """Rows are ordered by time and ids, and have exactly the documented fields."""
    body = client.get(f"{ACME}/chargebacks").json()
    assert (body["total"], body["pages"], len(body["items"])) == (15, 1, 15)
    PageOf[ChargebackRow].model_validate(body)
    assert [item["identity_id"] for item in body["items"][:3]] == ["UNALLOCATED", "sa-1", "sa-2"]
    assert body["items"][1]["amount"] == "5.25"


def test_filters_and_pages(client: httpx.Client) -> None:
    """Filters are combined with AND; a page past the end is empty."""
    wanted = {"identity_id": "sa-1", "product_type": "KAFKA_NUM_CKUS", "resource_id": "lkc-1", "cost_type": "usage"}
    assert client.get(f"{ACME}/chargebacks", params=wanted).json()["total"] == 5
    past = client.get(f"{ACME}/chargebacks", params={"page": 9}).json()
    assert (past["items"], past["total"], past["page"]) == ([], 15, 9)
    assert client.get(f"{ACME}/chargebacks", params={"identity_id": "nobody"}).json()["pages"] == 0


def test_the_default_range_is_the_lookback(store: TenantStore) -> None:
    """The default range ends today, or at the given end, and starts the lookback before."""
    with client_of(services_for(store, lookback_days=7)) as client:
        assert client.get(f"{ACME}/chargebacks").json()["total"] == 6
        params = {"end_date": LAST.isoformat()}
        assert client.get(f"{ACME}/chargebacks", params=params).json()["total"] == 15


def test_today_is_a_day_of_the_zone(store: TenantStore) -> None:
    """The default end is today in ``timezone``, in a query and in a body: half an hour before midnight in UTC, it is
    the next day in Berlin."""
    late = FixedClock(datetime.combine(LAST, time(23, 30), UTC))
    berlin, tomorrow = {"timezone": "Europe/Berlin"}, {"start_date": f"{LAST + ONE_DAY}"}
    with client_of(services_for(store, lookback_days=0, clock=late)) as client:
        assert client.get(f"{ACME}/chargebacks").json()["total"] == 3
        assert client.get(f"{ACME}/chargebacks", params=berlin).json()["total"] == 0
        assert client.get(f"{ACME}/chargebacks", params=tomorrow).status_code == 400
        assert client.get(f"{ACME}/chargebacks", params=tomorrow | berlin).status_code == 200
        assert len(client.post(f"{ACME}/export").text.splitlines()) == 4
        assert len(client.post(f"{ACME}/export", json=berlin).text.splitlines()) == 1
        assert f"should not be after the end, {LAST}" in client.post(f"{ACME}/export", json=tomorrow).text


def test_a_zone_moves_the_days(client: httpx.Client) -> None:
    """In a time zone west of Greenwich, a row of midnight UTC belongs to the day before."""
    day = {"start_date": f"{DAYS[1]}", "end_date": f"{DAYS[1]}"}
    west = client.get(f"{ACME}/chargebacks", params=day | {"timezone": "America/New_York"}).json()
    assert {item["timestamp"][:10] for item in west["items"]} == {f"{DAYS[2]}"}


def test_one_dimension(client: httpx.Client) -> None:
    """The response has the fields of a dimension, without time, amount and tags."""
    row = client.get(f"{ACME}/chargebacks").json()["items"][0]
    found = client.get(f"{ACME}/chargebacks/{row['dimension_id']}").json()
    Dimension.model_validate(found)
    assert found == {name: row[name] for name in found}
    assert "tags" not in found


def test_dates(client: httpx.Client) -> None:
    """The response has the UTC days with rows."""
    assert client.get(f"{ACME}/chargebacks/dates").json() == {"dates": [day.isoformat() for day in DAYS]}


def test_issues(client: httpx.Client) -> None:
    """The issues are the rows whose first method did not apply, summed over the range."""
    body = client.get(f"{ACME}/chargebacks/allocation-issues").json()
    PageOf[AllocationIssue].model_validate(body)
    assert body["items"] == [
        {
            "ecosystem": "test_cloud",
            "resource_id": "lkc-2",
            "product_type": "KAFKA_NUM_CKUS",
            "identity_id": "UNALLOCATED",
            "allocation_detail": "NO_IDENTITIES_LOCATED",
            "row_count": 5,
            "usage_cost": "0.00",
            "shared_cost": "17.50",
            "total_cost": "17.50",
        }
    ]


def test_a_tenant_sees_only_its_own(store: TenantStore, own_store: TenantStore) -> None:
    """A tag of one tenant does not show on another."""
    known(own_store, identities=["sa-1"])
    other = replace(own_store, tenant_name="other")
    with client_of(services_for(store, other)) as client:
        tag = {"tag_key": "team", "tag_value": "x"}
        assert client.post("/api/v1/tenants/other/entities/identity/sa-1/tags", json=tag).status_code == 201
        mine = client.get(f"{ACME}/chargebacks", params={"identity_id": "sa-1"}).json()["items"]
        theirs = client.get("/api/v1/tenants/other/chargebacks", params={"identity_id": "sa-1"}).json()["items"]
    assert {str(item["tags"]) for item in mine} == {"{}"}
    assert {str(item["tags"]) for item in theirs} == {"{'team': 'x'}"}
