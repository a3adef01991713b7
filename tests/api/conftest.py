"""A small organisation, served by a real server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path

import httpx
import pytest

from chargeback.model.inventory import Identity, Resource
from chargeback.store.control.days import DatasetState, save_day
from chargeback.store.control.inventory import ensure_known
from chargeback.store.tenant import TenantStore
from tests.support.clock import NOW, TODAY
from tests.support.days import set_chargebacks, set_topics
from tests.support.facts import Share, days_from, line, tenant_store, write_lines, write_shares
from tests.support.serving import client_of, services_for

#: The last of the days that have facts.
LAST = TODAY - timedelta(days=6)
DAYS = days_from(LAST - timedelta(days=4), 5)
ACME = "/api/v1/tenants/acme"


def fill(store: TenantStore) -> None:
    """Write five days in which two identities and UNALLOCATED share the cost of two resources."""
    write_lines(
        store.facts, [line(day, "6.5" if n == 0 else "3.50", resource=f"lkc-{n + 1}") for day in DAYS for n in range(2)]
    )
    write_shares(store.facts, [share for day in DAYS for share in _shares(day)])
    with store.control.write() as connection:
        for day in DAYS:
            save_day(connection, day, billing_gathered=True, resources_gathered=True)
            set_chargebacks(connection, day)
            set_topics(connection, day, state=DatasetState.NONE, is_measured=True)
        save_day(connection, LAST + timedelta(days=1), billing_gathered=True)


def known(store: TenantStore, *, resources: Iterable[str] = (), identities: Iterable[str] = ()) -> None:
    """Add a test's entities to the inventory, and UNALLOCATED, which it always has."""
    with store.control.write() as connection:
        ensure_known(
            connection,
            NOW,
            billed=[Resource(resource_id, "thing") for resource_id in resources],
            charged=[Identity(identity_id, "service_account") for identity_id in identities],
        )


def _shares(day: date) -> list[Share]:
    return [
        Share(day, "sa-1", "5.25"),
        Share(day, "sa-2", "1.25", cost_type="shared"),
        Share(day, "UNALLOCATED", "3.5", resource="lkc-2", cost_type="shared", detail="NO_IDENTITIES_LOCATED"),
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """The storage of tenant acme, with data."""
    with tenant_store(tmp_path_factory.mktemp("storage"), fill=fill) as store:
        known(store)
        yield store


@pytest.fixture(scope="module")
def client(store: TenantStore) -> Iterator[httpx.Client]:
    """A client of the API for tenant acme, for tests that change nothing."""
    with client_of(services_for(store)) as client:
        yield client


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[TenantStore]:
    """Storage of tenant acme that a test may change."""
    with tenant_store(tmp_path, fill=fill) as store:
        yield store


@pytest.fixture
def own_client(own_store: TenantStore) -> Iterator[httpx.Client]:
    """A client of the API with the storage ``own_store``."""
    with client_of(services_for(own_store)) as client:
        yield client


def parameters_of(response: httpx.Response) -> list[str]:
    """Return the parameters that a 400 names, sorted."""
    assert response.status_code == 400, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["type"]) == (400, "urn:chargeback:invalid-request")
    return sorted(error["parameter"] for error in body["errors"])
