"""SPEC §5 and §7: responses for missing, impossible, too large and too slow requests."""

from __future__ import annotations

import copy
import os
import time
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from chargeback.api.services import ApiLimits
from chargeback.model.chargeback import CHARGEBACKS
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from tests.contract.deployment import Deployment
from tests.contract.endpoints import ENDPOINTS, Endpoint
from tests.contract.problems import detail_of, kind_of
from tests.contract.records import Client
from tests.support.facts import Share, hold_tags, replace_day, tenant_store
from tests.support.serving import client_of, services_for, wait_until

OF_TENANTS = [endpoint for endpoint in ENDPOINTS if "{tenant_name}" in endpoint.path]
PATHS = sorted({endpoint.path for endpoint in ENDPOINTS})
BODIES: dict[str, Any] = {
    "tag_key": "team",
    "tag_value": "x",
    "display_name": "x",
    "name": "x",
    "page": "costs",
    "query": "period=30d",
    "items": [{"entity_type": "resource", "entity_id": "x", "tag_key": "team", "tag_value": "x"}],
    "document": {},
    "reason": "x",
    "note": "x",
    "csv": "date,amount\n2026-01-01,1\n",
    "mapping": {"columns": {"date": "date", "amount": "amount"}},
}


def body_of(endpoint: Endpoint) -> dict[str, Any]:
    """Return a valid body."""
    body = {name: copy.deepcopy(value) for name, value in BODIES.items() if name in endpoint.body}
    if endpoint.path.endswith("/bulk-delete"):
        del body["items"][0]["tag_value"]
    return body


def ask(client: httpx.Client, endpoint: Endpoint, path: str) -> httpx.Response:
    """Send a valid request."""
    return client.request(endpoint.method, path, json=body_of(endpoint) or None, params=endpoint.needed)


@pytest.mark.parametrize("endpoint", OF_TENANTS, ids=lambda endpoint: endpoint.name)
def test_an_unknown_tenant_is_404(client: Client, endpoint: Endpoint) -> None:
    """Every endpoint responds with 404 for an unknown tenant, whatever its name; names are case-sensitive."""
    for name in ("nobody", "ACME", "acme%20", "%00", "..%2F..", "a" * 300):
        assert kind_of(ask(client, endpoint, endpoint.of(name)), 404) == "not-found"


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/v1",
        "/api/v2/tenants",
        "/api/v1/tenant",
        "/api/v1/tenants/",
        "/api/v1/tenants/acme/nothing",
        "/api/v1/tenants/acme/billing/",
        "/tenants",
        "/readiness",
        "/health/",
    ],
)
def test_other_paths_are_404(client: Client, path: str) -> None:
    """Only ``/health`` is outside the prefix ``/api/v1``; other paths are a 404 and never redirect."""
    assert kind_of(client.get(path), 404) == "not-found"


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_405(client: Client, path: str) -> None:
    """A 405 lists the allowed methods."""
    possible = {endpoint.method for endpoint in ENDPOINTS if endpoint.path == path}
    concrete = next(endpoint for endpoint in ENDPOINTS if endpoint.path == path).of("acme")
    possible |= {"HEAD"} if "GET" in possible else set()
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS"} - possible:
        response = client.request(method, concrete)
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) == possible
        if method == "HEAD":
            assert response.content == b""
            continue
        assert kind_of(response, 405) == "method-not-allowed"
        assert method in detail_of(response, 405)


@pytest.mark.parametrize(
    "endpoint", [endpoint for endpoint in ENDPOINTS if endpoint.method == "GET"], ids=lambda endpoint: endpoint.name
)
def test_head_is_get_without_the_body(client: Client, endpoint: Endpoint) -> None:
    """HEAD has the same status and headers as GET, also for refused requests."""
    path = endpoint.of("acme")
    for asked in (path, f"{path}?nonsense=1"):
        got, head = client.get(asked), client.head(asked)
        assert head.content == b""
        assert head.status_code == got.status_code
        # HEAD lacks headers that are known only when the body is made.
        assert {**head.headers, "date": ""} == {**_without(got.headers, "transfer-encoding"), "date": ""}


def _without(headers: httpx.Headers, name: str) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key != name}


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/swagger-ui.css", "/openapi.json", "/metrics"])
def test_head_of_pages(client: Client, path: str) -> None:
    """Paths outside the document support HEAD as well."""
    head = client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 0


@pytest.mark.parametrize(
    "endpoint", [endpoint for endpoint in ENDPOINTS if endpoint.method != "GET"], ids=lambda endpoint: endpoint.name
)
def test_writes_have_no_query(client: Client, endpoint: Endpoint) -> None:
    """Fields of the body are not read from the query."""
    response = client.request(endpoint.method, endpoint.of("acme"), json=body_of(endpoint), params={"timezone": "UTC"})
    assert kind_of(response, 400) == "invalid-request"
    assert "timezone" in detail_of(response, 400)


@pytest.mark.parametrize(
    "endpoint", [endpoint for endpoint in ENDPOINTS if endpoint.body], ids=lambda endpoint: endpoint.name
)
def test_a_body_that_is_too_large_is_413(client: Client, endpoint: Endpoint) -> None:
    """A body beyond 8 MiB is refused unread; one just below is parsed."""
    large = b" " * (8 * 2**20 + 1)
    assert kind_of(client.request(endpoint.method, endpoint.of("acme"), content=large), 413) == "body-too-large"
    assert kind_of(client.request(endpoint.method, endpoint.of("acme"), content=large[:-1]), 400) == "invalid-request"


def test_credentials_are_not_looked_at(client: Client) -> None:
    """Without an access mode, credentials are ignored and never refused."""
    for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic !!!"}, {"Cookie": "session=x"}):
        assert client.get("/api/v1/tenants", headers=headers).status_code == 200


#: Endpoints that respond without reading the storage.
AT_ONCE = ("/health", "/me", "/pipeline/run", "/metrics/chargebacks")


def test_every_endpoint_keeps_the_time_limit(scratch: Client, deployment: Deployment) -> None:
    """A request that runs longer than ``api.request_timeout_seconds`` gets 504; ``/health`` never does."""
    with (
        deployment.served(mode="api", request_timeout_seconds=0) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        for endpoint in ENDPOINTS:
            if not endpoint.path.endswith(AT_ONCE):
                assert kind_of(ask(client, endpoint, endpoint.of("scratch")), 504) == "timeout", endpoint.name
        assert client.get("/health").status_code == 200


def test_what_is_too_slow_is_interrupted(own_folder: Path) -> None:
    """The response comes at the limit, not at the end of the query, and the query is cancelled."""
    day, rows = date(2026, 1, 1), 400_000
    row = Share(day, "sa", "1.5").row()
    columns = {field.name: pa.repeat(pa.scalar(row[field.name], field.type), rows) for field in CHARGEBACKS}
    numbers = pc.cast(pa.array(range(rows)), pa.string())
    columns["identity_id"] = pc.binary_join_element_wise("sa-", numbers, "")
    with tenant_store(own_folder) as store:
        replace_day(store.facts, CHARGEBACKS_TABLE, day, pa.table(columns, schema=CHARGEBACKS))
        keys = "abcdefghijklmnop"
        hold_tags(store, keys)
        asked: dict[str, Any] = {"start_date": day, "end_date": day, "group_by": [f"tag:{key}" for key in keys]}
        with client_of(services_for(store, limits=ApiLimits(0.1))) as client:
            response = client.get("/api/v1/tenants/acme/chargebacks/aggregate", params=asked)
            assert kind_of(response, 504) == "timeout"
            wait_until(is_idle)
            assert client.get("/health").status_code == 200


def is_idle() -> bool:
    """Return whether this process is idle for a moment."""
    before = os.times()
    time.sleep(0.3)
    after = os.times()
    return after.user + after.system - before.user - before.system < 0.1
