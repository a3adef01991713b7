"""SPEC §4: CORS is off unless configured; the allowed methods are GET, POST, PATCH and DELETE."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.contract.deployment import Deployment
from tests.contract.problems import kind_of
from tests.contract.records import Client

OURS, OTHERS = "https://finops.example", "https://elsewhere.example"


@pytest.fixture(scope="module")
def open_to_some(deployment: Deployment) -> Iterator[httpx.Client]:
    """The service with one allowed origin."""
    with (
        deployment.served(mode="api", enable_cors=True, cors_origins=[OURS]) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def preflight(client: httpx.Client, origin: str, method: str) -> httpx.Response:
    """Send the preflight request of a browser."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "content-type",
    }
    return client.options("/api/v1/tenants/acme/tags", headers=headers)


def test_off_by_default(client: Client) -> None:
    """By default there are no CORS headers, and a preflight request is a 405."""
    response = client.get("/api/v1/tenants", headers={"Origin": OURS})
    assert not [name for name in response.headers if name.startswith("access-control")]
    assert kind_of(preflight(client, OURS, "GET"), 405) == "method-not-allowed"


def test_allowed_origins_may_read(open_to_some: httpx.Client) -> None:
    """Every response allows the configured origin, errors included; other origins are not allowed."""
    for path in ("/health", "/api/v1/tenants", "/api/v1/tenants/nobody/billing", "/nowhere"):
        answer = open_to_some.get(path, headers={"Origin": OURS})
        assert answer.headers["access-control-allow-origin"] == OURS
        assert "access-control-allow-origin" not in open_to_some.get(path, headers={"Origin": OTHERS}).headers


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_allowed_methods(open_to_some: httpx.Client, method: str) -> None:
    """Exactly four methods are allowed, for configured origins only."""
    answer = preflight(open_to_some, OURS, method)
    assert answer.status_code == 200
    assert {name.strip() for name in answer.headers["access-control-allow-methods"].split(",")} == {
        "GET",
        "POST",
        "PATCH",
        "DELETE",
    }
    assert preflight(open_to_some, OTHERS, method).status_code == 400


def test_other_methods_are_not_allowed(open_to_some: httpx.Client) -> None:
    """A preflight request for PUT is refused; pages of other origins use PATCH."""
    assert preflight(open_to_some, OURS, "PUT").status_code == 400
