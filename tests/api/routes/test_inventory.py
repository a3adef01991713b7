"""Resources and identities over HTTP, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest
from sqlalchemy import insert

from chargeback.api.routes.inventory import IdentityItem, InventorySummary, ResourceItem
from chargeback.reports.answers import PageOf
from chargeback.store.control.schema import identities, resources
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME

THEN = datetime(2026, 1, 10, tzinfo=UTC)


@pytest.fixture
def filled(own_store: TenantStore, own_client: httpx.Client) -> httpx.Client:
    """A tenant with two clusters, one of them deleted, and a user."""
    common: dict[str, object] = {"created_at": None, "last_seen_at": THEN, "metadata": {"cloud": "aws"}}
    clusters: list[dict[str, object]] = [
        {"resource_id": "lkc-1", "resource_type": "kafka_cluster", "display_name": "Orders", "deleted_at": None},
        {"resource_id": "lkc-2", "resource_type": "kafka_cluster", "display_name": "Old", "deleted_at": THEN},
    ]
    user: dict[str, object] = {"identity_id": "u-1", "identity_type": "user", "display_name": "Ann", "deleted_at": None}
    with own_store.control.write() as connection:
        connection.execute(insert(resources), [common | each for each in clusters])
        connection.execute(insert(identities), [common | user])
    return own_client


def test_resources(filled: httpx.Client) -> None:
    """Filters, search, order and time apply; items have the documented fields."""
    url = f"{ACME}/resources"
    body = filled.get(url, params={"sort_by": "display_name"}).json()
    PageOf[ResourceItem].model_validate(body)
    assert [item["resource_id"] for item in body["items"]] == ["lkc-2", "lkc-1"]
    assert body["items"][0]["deleted_at"] == "2026-01-10T00:00:00Z"
    assert body["items"][0]["status"] == "deleted"
    for params, expected in (
        ({"search": "oRD"}, ["lkc-1"]),
        ({"status": "deleted"}, ["lkc-2"]),
        ({"resource_type": "topic"}, []),
        ({"active_at": "2026-01-09T23:00:00-05:00"}, ["lkc-1"]),
        ({"active_at": "2026-01-09T00:00:00", "search": "nothing", "sort_order": "desc"}, ["lkc-1", "lkc-2"]),
        ({"period_start": "2026-01-09", "period_end": "2026-01-11T00:00:00Z"}, ["lkc-1", "lkc-2"]),
    ):
        items = filled.get(url, params=params).json()["items"]
        assert [item["resource_id"] for item in items] == expected, params


def test_identities(filled: httpx.Client) -> None:
    """Identities can be filtered, and have the documented fields."""
    body = filled.get(f"{ACME}/identities", params={"identity_type": "user", "sort_by": "x"}).json()
    PageOf[IdentityItem].model_validate(body)
    assert [item["identity_id"] for item in body["items"]] == ["u-1"]


def test_summary(filled: httpx.Client) -> None:
    """The summary counts entities by type."""
    body = filled.get(f"{ACME}/inventory/summary").json()
    InventorySummary.model_validate(body)
    assert body == {
        "resource_counts": {"kafka_cluster": {"total": 2, "active": 1, "deleted": 1}},
        "identity_counts": {"user": {"total": 1, "active": 1, "deleted": 0}},
    }
