"""Authorisation: every endpoint, with every right, with and without a scope."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import httpx
import pytest
from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.caller import Caller, Right, TenantAccess, rights_of
from chargeback.api import app as application
from chargeback.api.app import create_app
from chargeback.api.authorisation import NEEDS, Access, Needs, RequiredAccess
from chargeback.api.authorisation import WHOLE as WHOLE_BILL
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.api.routes.test_audit import log_of
from tests.contract.endpoints import ENDPOINTS, Endpoint
from tests.contract.rights import OF_ANYBODY, OPEN, WHOLE, right_for
from tests.support.callers import Callers, asked_by, caller
from tests.support.serving import client_of, services_for, wait_until

SCOPE = {"identity_id": ["sa-1"]}
CALLERS = Callers.of(
    [
        *(caller(right, right) for right in Right),
        *(caller(f"scoped {right}", right, scope=SCOPE) for right in Right),
        caller("stranger"),
        caller("elsewhere", Right.ADMIN, tenants=["other"]),
        # A token without a right, for example.
        Caller("rightless", "token", (), {"acme": TenantAccess(frozenset())}.get),
    ]
)
OF_TENANTS = [endpoint for endpoint in ENDPOINTS if "{tenant_name}" in endpoint.path]
OF_SOMEBODY = [endpoint for endpoint in ENDPOINTS if endpoint.name in OF_ANYBODY]
#: A request that is invalid for every endpoint: it changes nothing, and its status shows that access was granted.
INVALID = {"nonsense": "1"}
GRANTED = (400, "invalid-request")
ALSO_GRANTED = (400, "topic-attribution-unavailable")


@pytest.fixture(scope="module")
def callers(store: TenantStore) -> Iterator[httpx.Client]:
    """A client of acme whose callers all have an identity."""
    with client_of(services_for(store, authenticate=CALLERS)) as client:
        yield client


@pytest.fixture
def own_callers(own_store: TenantStore) -> Iterator[httpx.Client]:
    """The same, with storage that a test may change."""
    with client_of(services_for(own_store, authenticate=CALLERS)) as client:
        yield client


def ask(client: httpx.Client, endpoint: Endpoint, name: str | None, tenant: str = "acme") -> tuple[int, str]:
    """Return the status and the type of the response to an invalid request."""
    headers = {} if name is None else asked_by(name)
    response = client.request(endpoint.method, endpoint.of(tenant), params=INVALID, headers=headers)
    return response.status_code, response.json()["type"].removeprefix("urn:chargeback:")


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_nobody_gets_nothing(callers: httpx.Client, endpoint: Endpoint) -> None:
    """A request without an identity gets 401 from every endpoint except the probes."""
    expected = GRANTED if endpoint.name in OPEN else (401, "unauthenticated")
    assert ask(callers, endpoint, None) == expected


@pytest.mark.parametrize("endpoint", OF_TENANTS, ids=lambda endpoint: endpoint.name)
def test_other_tenants_are_not_there(callers: httpx.Client, endpoint: Endpoint) -> None:
    """A caller without rights in a tenant gets the same response as for a tenant that does not exist."""
    asked = (
        ("stranger", "acme"),
        ("elsewhere", "acme"),
        ("admin", "nobody"),
        ("elsewhere", "other"),
        ("rightless", "acme"),
    )
    for name, tenant in asked:
        assert ask(callers, endpoint, name, tenant) == (404, "not-found")


@pytest.mark.parametrize("endpoint", OF_TENANTS, ids=lambda endpoint: endpoint.name)
def test_each_right_allows_what_it_says(callers: httpx.Client, endpoint: Endpoint) -> None:
    """A right, with or without a scope, opens the endpoints that need it or a right that it includes."""
    needed = right_for(endpoint)
    for right, is_scoped in product(Right, (False, True)):
        found = ask(callers, endpoint, f"scoped {right}" if is_scoped else right)
        if needed not in rights_of([right]) or (is_scoped and endpoint.name in WHOLE):
            assert found == (403, "forbidden"), (right, is_scoped)
        else:
            assert found in (GRANTED, ALSO_GRANTED), (right, is_scoped)


@pytest.mark.parametrize("endpoint", OF_SOMEBODY, ids=lambda endpoint: endpoint.name)
def test_somebody_may_ask_what_is_about_no_tenant(callers: httpx.Client, endpoint: Endpoint) -> None:
    """Endpoints about no tenant need an identity, but no right."""
    assert ask(callers, endpoint, "stranger") == GRANTED


def test_refusals_say_what_is_missing(callers: httpx.Client) -> None:
    """The error names the missing right or the scope, and the role that applied."""
    tagging = callers.post(f"{ACME}/tags/bulk", headers=asked_by("export"))
    assert tagging.json()["detail"] == "This needs the right tag in tenant acme; yours are: read, export (roles[0])."
    whole = callers.get(f"{ACME}/runs", headers=asked_by("scoped admin"))
    assert whole.json()["detail"] == (
        "This is about the whole bill of tenant acme, but you may see only a part: identity_id sa-1 (roles[0])."
    )
    assert callers.get(ACME).headers["www-authenticate"] == "Bearer"


def test_files_are_exports(callers: httpx.Client) -> None:
    """A request that accepts only CSV needs the right to export, as the path of a file does."""
    csv = {"Accept": "text/csv"}
    assert callers.get(f"{ACME}/chargebacks", headers=csv | asked_by("read")).status_code == 403
    exported = callers.get(f"{ACME}/chargebacks", headers=csv | asked_by("export"))
    assert exported.status_code == 200
    assert exported.headers["content-type"].startswith("text/csv")
    either = {"Accept": "application/json, text/csv"}
    assert callers.get(f"{ACME}/chargebacks", headers=either | asked_by("read")).status_code == 200


def test_lists_of_tenants_have_those_of_the_caller(callers: httpx.Client) -> None:
    """Lists have only tenants that the caller may read; probes see the status."""
    for name, expected in (("read", ["acme"]), ("stranger", []), ("elsewhere", [])):
        tenants = callers.get("/api/v1/tenants", headers=asked_by(name)).json()
        assert [each["tenant_name"] for each in tenants] == expected
        ready = callers.get("/api/v1/readiness", headers=asked_by(name)).json()
        assert ([each["tenant_name"] for each in ready["tenants"]], ready["status"]) == (expected, "ready")
    ready = callers.get("/api/v1/readiness").json()
    assert (ready["tenants"], ready["status"]) == ([], "ready")


def test_metrics_need_the_sight_of_a_tenant(callers: httpx.Client, client: httpx.Client) -> None:
    """Metrics are for callers who see all rows of at least one tenant."""
    assert callers.get("/metrics").status_code == 401
    assert callers.get("/metrics", headers=asked_by("stranger")).status_code == 403
    assert callers.get("/metrics", headers=asked_by("scoped admin")).status_code == 403
    assert callers.get("/metrics", headers=asked_by("read")).status_code == 200
    assert client.get("/metrics").status_code == 200


def test_denied_requests_are_in_the_audit_log(own_callers: httpx.Client) -> None:
    """A denied request is recorded once a day with the name of the caller, unless it is about no tenant."""
    views = f"{ACME}/views"
    for _ in range(2):
        assert own_callers.get(views).status_code == 401
        assert own_callers.get(views, headers=asked_by("stranger")).status_code == 404
        assert own_callers.post(f"{ACME}/pipeline/run", headers=asked_by("tag")).status_code == 403
    own_callers.get("/api/v1/tenants")
    own_callers.headers.update(asked_by("admin"))
    wait_until(lambda: len(log_of(own_callers)) == 3)
    found = {entry["who"]: (entry["target"], entry["after"]["status"]) for entry in log_of(own_callers)}
    assert found == {
        "api": (f"GET {views}", 401),
        "stranger": (f"GET {views}", 404),
        "tag": (f"POST {ACME}/pipeline/run", 403),
    }


def test_a_route_that_declares_nothing_does_not_start(store: TenantStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a route declares no access, the application cannot be created."""
    router = APIRouter()

    @router.get("/forgotten")
    async def _forgotten() -> Response:
        return Response()

    monkeypatch.setattr(application, "_ROUTERS", (*application._ROUTERS, router))
    with pytest.raises(ValueError, match="forgotten does not declare what it needs"):
        create_app(services_for(store))


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_document_says_what_is_needed(client: httpx.Client, endpoint: Endpoint) -> None:
    """The document has the access of each route, a sentence about it in the description, and the matching errors."""
    operation = client.get("/openapi.json").json()["paths"][endpoint.documented][endpoint.method.lower()]
    needs: Needs = Access.PUBLIC if endpoint.name in OPEN else Access.AUTHENTICATED
    if endpoint.is_file:
        assert "this needs the right `export`" in operation["description"]
        needs = Right.READ
    elif endpoint in OF_TENANTS:
        needs = right_for(endpoint)
    required = RequiredAccess(needs, endpoint.name in WHOLE)
    assert {name: operation.get(name) for name in (NEEDS, WHOLE_BILL)} == {
        NEEDS: needs,
        WHOLE_BILL: required.whole or None,
    }
    assert required.sentence() in operation["description"]
    assert ("401" in operation["responses"]) == (endpoint.name not in OPEN)
    assert ("403" in operation["responses"]) == (endpoint in OF_TENANTS)


def test_everybody_may_do_everything_where_nobody_is_told_apart(client: httpx.Client) -> None:
    """Without `access` in the configuration, every request is allowed."""
    assert client.get(f"{ACME}/audit").status_code == 200
    assert client.get(f"{ACME}/chargebacks.csv").status_code == 200
