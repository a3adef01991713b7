"""The search over HTTP."""

from __future__ import annotations

from datetime import timedelta

import httpx

from chargeback.reports.search import FoundList
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, known, parameters_of


def test_what_was_found(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Results have the documented fields; without a text there are none."""
    known(own_store, resources=["lkc-1"], identities=["sa-1"])
    body = own_client.get(f"{ACME}/search", params={"q": "SA-"}).json()
    FoundList.model_validate(body)
    assert [(item["kind"], item["id"], item["amount"]) for item in body["items"]] == [("identity", "sa-1", "26.25")]
    nothing = own_client.get(f"{ACME}/search").json()
    assert (nothing["items"], nothing["currency"]) == ([], "USD")
    assert parameters_of(own_client.get(f"{ACME}/search", params={"limit": "x", "q": "x" * 600})) == ["limit", "q"]


def test_amounts_are_those_of_the_period(own_client: httpx.Client, own_store: TenantStore) -> None:
    """The response names the period: by default the thirty days up to the last calculated one."""
    known(own_store, identities=["sa-1"])

    def found(**params: str) -> tuple[str, str, str]:
        body = own_client.get(f"{ACME}/search", params={"q": "sa-", **params}).json()
        return body["start_date"], body["end_date"], body["items"][0]["amount"]

    assert found() == (str(LAST - timedelta(days=29)), str(LAST), "26.25")
    assert found(period="2d") == (str(DAYS[-2]), str(LAST), "10.50")
    assert found(start_date=str(DAYS[0]), end_date=str(DAYS[2])) == (str(DAYS[0]), str(DAYS[2]), "15.75")
    wrong = {"period": "7d", "start_date": str(LAST)}
    assert parameters_of(own_client.get(f"{ACME}/search", params=wrong)) == ["period"]


def test_values_of_cost_categories_are_found(own_client: httpx.Client) -> None:
    """Category values are found by name, with their cost."""
    document = {
        "values": {"cc-1": {"name": "Payments"}},
        "rules": [{"match": {"identity": ["sa-1"]}, "assign": "cc-1"}],
    }
    saved = own_client.put(
        f"{ACME}/cost-categories/cost_center", json={"document": document}, headers={"If-None-Match": "*"}
    )
    assert saved.status_code == 201, saved.text
    body = own_client.get(f"{ACME}/search", params={"q": "paym"}).json()
    assert body["items"] == [
        {
            "kind": "category",
            "id": "cc-1",
            "name": "Payments",
            "type": "cost_center",
            "parent_id": None,
            "amount": "26.25",
        }
    ]
