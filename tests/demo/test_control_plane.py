"""The provider's endpoints: parameters, windows, and listed objects."""

from __future__ import annotations

from datetime import date, timedelta

import httpx
import pytest

from chargeback.demo.organisation import Organisation
from chargeback.demo.responses import loads
from chargeback.demo.server import DemoServer
from tests.demo.conftest import TODAY

COSTS = "/billing/v1/costs"


def _window(start: date, end: date) -> dict[str, str]:
    return {"start_date": start.isoformat(), "end_date": end.isoformat()}


def _all(client: httpx.Client, path: str, parameters: dict[str, str]) -> list[dict[str, object]]:
    """Return every item of a list, following ``next``."""
    found: list[dict[str, object]] = []
    body = client.get(path, params=parameters).json()
    while True:
        found += body["data"]
        onward = body["metadata"].get("next")
        if not onward:
            return found
        body = client.get(onward).json()


def test_costs_are_the_truth(client: httpx.Client, organisation: Organisation) -> None:
    """The rows of a window, read as decimals, are exactly the generated ones, day by day, without the end date."""
    first = organisation.spec.first_day
    rows = loads(client.get(COSTS, params=_window(first, first + timedelta(days=3))).content)["data"]
    expected = [row for offset in range(3) for row in organisation.cost_rows(first + timedelta(days=offset))]
    assert rows == expected
    assert all(row["end_date"] > row["start_date"] for row in rows)


def test_costs_do_not_depend_on_the_window(client: httpx.Client, organisation: Organisation) -> None:
    """A day requested alone has the same rows as in a longer window, with any page size."""
    first = organisation.spec.first_day
    whole = client.get(COSTS, params=_window(first, first + timedelta(days=10))).json()["data"]
    day = first + timedelta(days=6)
    alone = _all(client, COSTS, {**_window(day, day + timedelta(days=1)), "page_size": "7"})
    assert alone == [row for row in whole if row["start_date"] == day.isoformat()]


@pytest.mark.parametrize(
    ("start", "end", "parameter"),
    [
        (TODAY - timedelta(days=40), TODAY - timedelta(days=8), "end_date"),
        (TODAY - timedelta(days=366), TODAY - timedelta(days=360), "start_date"),
        (TODAY, TODAY, "end_date"),
    ],
)
def test_costs_refuse_windows_like_the_provider(client: httpx.Client, start: date, end: date, parameter: str) -> None:
    """A window that is longer than a month, further back than a year, or empty returns 400 with the parameter."""
    answer = client.get(COSTS, params=_window(start, end))
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["source"] == {"parameter": parameter}


@pytest.mark.parametrize("query", [{}, {"start_date": "2026-11-01"}, {"start_date": "2026-02-30", "end_date": "x"}])
def test_costs_need_two_dates(client: httpx.Client, query: dict[str, str]) -> None:
    """Missing or invalid dates return 400."""
    assert client.get(COSTS, params=query).status_code == 400


def test_a_month_and_a_year_are_allowed(client: httpx.Client) -> None:
    """31 days at once and a start 365 days ago are valid; days before the organisation are empty."""
    start = TODAY - timedelta(days=365)
    answer = client.get(COSTS, params=_window(start, start + timedelta(days=31)))
    assert (answer.status_code, answer.json()["data"]) == (200, [])


def test_key_filters_are_served(client: httpx.Client, organisation: Organisation) -> None:
    """Keys can be filtered by owner and by resource; across pages, each key is listed once."""
    listed = organisation.listed(organisation.inventory.api_keys)
    assert sorted(str(key["id"]) for key in _all(client, "/iam/v2/api-keys", {})) == sorted(key.id for key in listed)
    chosen = listed[0]
    query = {"spec.owner": chosen.owner, "spec.resource": chosen.resource}
    found = {key["id"] for key in _all(client, "/iam/v2/api-keys", query)}
    assert found == {key.id for key in listed if (key.owner, key.resource) == (chosen.owner, chosen.resource)}


def test_accounts_can_be_asked_for_by_name(client: httpx.Client, organisation: Organisation) -> None:
    """The filter display_name may be repeated."""
    names = [item.name for item in organisation.inventory.service_accounts[:2]]
    data = client.get("/iam/v2/service-accounts", params={"display_name": names}).json()["data"]
    assert [item["display_name"] for item in data] == names


def test_deleted_things_are_not_listed(client: httpx.Client, organisation: Organisation) -> None:
    """A deleted account and a deleted cluster are in no list."""
    account = organisation.inventory.service_accounts[-1]
    assert account.id not in {item["id"] for item in _all(client, "/iam/v2/service-accounts", {})}
    cluster = next(item for item in organisation.inventory.clusters if item.deleted is not None)
    answer = client.get("/cmk/v2/clusters", params={"environment": cluster.environment})
    assert cluster.id not in answer.text
    place = f"/connect/v1/environments/{cluster.environment}/clusters/{cluster.id}/connectors"
    assert client.get(place).status_code == 404


def test_unknown_environments_are_forbidden(client: httpx.Client) -> None:
    """A list of an environment that does not exist returns 403, a list without an environment 400."""
    assert client.get("/cmk/v2/clusters", params={"environment": "env-none"}).status_code == 403
    assert client.get("/cmk/v2/clusters").status_code == 400


def test_regions_lead_to_their_gateways(server: DemoServer, client: httpx.Client, organisation: Organisation) -> None:
    """The address of a region is that of the gateway that lists its statements and no others."""
    regions = client.get("/fcpm/v2/regions", params={"cloud": "AWS"}).json()["data"]
    inventory = organisation.inventory
    for region in regions:
        assert region["http_endpoint"] == server.flink_url(region["id"])
        names: set[str] = set()
        for environment in inventory.environments:
            place = f"/sql/v1/organizations/{inventory.organization_id}/environments/{environment.id}/statements"
            url, auth = region["http_endpoint"] + place, server.flink_credentials(region["id"])
            with httpx.Client(auth=auth) as gateway:
                names |= {str(item["name"]) for item in _all(gateway, url, {"page_size": "2"})}
        pools = {pool.id for pool in inventory.compute_pools if pool.region_id == region["id"]}
        assert names == {item.name for item in inventory.statements if item.pool in pools and item.listed}


def test_statements_of_others_are_not_found(server: DemoServer, organisation: Organisation) -> None:
    """Another organisation, or an environment that does not exist, returns 404."""
    auth, base = server.flink_credentials("us-east-1"), server.flink_url("us-east-1")
    organization = organisation.inventory.organization_id
    environment = organisation.inventory.environments[0].id
    for place in (f"{'0' * 8}/environments/{environment}", f"{organization}/environments/env-none"):
        assert httpx.get(f"{base}/sql/v1/organizations/{place}/statements", auth=auth).status_code == 404


def test_connect_refuses_unknown_expansions(client: httpx.Client, organisation: Organisation) -> None:
    """An unknown expansion returns 400; a request for one expansion returns only that one."""
    connector = organisation.inventory.connectors[0]
    place = f"/connect/v1/environments/{connector.environment}/clusters/{connector.cluster}/connectors"
    assert client.get(place, params={"expand": "colour"}).status_code == 400
    assert set(client.get(place, params={"expand": "id"}).json()[connector.name]) == {"id"}
    assert client.get(place, params={"page_size": "5"}).status_code == 400
