"""The search over HTTP."""

from __future__ import annotations

import httpx

from chargeback.reports.search import FoundList
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, known, parameters_of


def test_what_was_found(own_client: httpx.Client, own_store: TenantStore) -> None:
    """The documented shape; nothing finds nothing."""
    known(own_store, resources=["lkc-1"], identities=["sa-1"])
    body = own_client.get(f"{ACME}/search", params={"q": "SA-"}).json()
    FoundList.model_validate(body)
    assert [(item["kind"], item["id"], item["amount"]) for item in body["items"]] == [("identity", "sa-1", "26.25")]
    assert own_client.get(f"{ACME}/search").json() == {"items": [], "currency": "USD"}
    assert parameters_of(own_client.get(f"{ACME}/search", params={"limit": "x", "q": "x" * 600})) == ["limit", "q"]
