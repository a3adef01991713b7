"""Tenants and the state of their days."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx

from chargeback.store.control import days
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST
from tests.support.facts import tenant_store
from tests.support.serving import client_of, services_for


def test_tenants_are_listed_by_name(store: TenantStore, tmp_path: Path) -> None:
    """Tenants have their counts; a gathered day that is not calculated is pending."""
    with tenant_store(tmp_path, name="aaa") as other, client_of(services_for(store, other)) as client:
        first, second = client.get("/api/v1/tenants").json()
    assert (first["tenant_name"], first["dates_calculated"], first["last_calculated_date"]) == ("aaa", 0, None)
    assert second == {
        "tenant_name": "acme",
        "tenant_id": "acme-id",
        "ecosystem": "test_cloud",
        "dates_pending": 1,
        "dates_calculated": 5,
        "last_calculated_date": LAST.isoformat(),
        "storage_error": None,
        "topic_attribution_status": "disabled",
        "topic_attribution_error": None,
    }


def test_status_day_by_day(client: httpx.Client, store: TenantStore) -> None:
    """The status has the days of the range in order, and the days that lack data; topic flags are false while topics
    are disabled."""
    status = client.get(f"{ACME}/status").json()
    assert [state["tracking_date"] for state in status["states"]] == [
        day.isoformat() for day in [*DAYS, LAST + timedelta(days=1)]
    ]
    assert status["states"][0] == {
        "tracking_date": DAYS[0].isoformat(),
        "billing_gathered": True,
        "resources_gathered": True,
        "chargeback_calculated": True,
        "topic_overlay_gathered": False,
        "topic_attribution_calculated": False,
    }
    assert status["incomplete"] == []
    with store.control.write() as connection:
        days.mark_incomplete(connection, DAYS[1], {days.METRICS: "HTTP 503"})
    marked = {"tracking_date": f"{DAYS[1]}", "reasons": ["metrics: HTTP 503"]}
    assert client.get(f"{ACME}/status").json()["incomplete"] == [marked]
    narrow = client.get(f"{ACME}/status", params={"start_date": f"{DAYS[1]}", "end_date": f"{DAYS[2]}"}).json()
    assert [state["tracking_date"] for state in narrow["states"]] == [f"{DAYS[1]}", f"{DAYS[2]}"]
