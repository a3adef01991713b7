"""The application as a whole: CORS, modes and the OpenAPI document."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from chargeback.api.app import create_app
from chargeback.api.services import ApiLimits
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.support.serving import client_of, services_for

ORIGIN = {"Origin": "https://finops.example"}
PREFLIGHT = ORIGIN | {"Access-Control-Request-Method": "PATCH"}


def test_cors_is_off_by_default(client: httpx.Client) -> None:
    """By default, pages of other origins may not read responses."""
    assert "access-control-allow-origin" not in client.get("/health", headers=ORIGIN).headers


def test_cors_as_configured(store: TenantStore) -> None:
    """Four methods and the configured origins are allowed, and all documented headers are exposed, for errors as
    well."""
    limits = ApiLimits(enable_cors=True, cors_origins=("https://finops.example",))
    with client_of(services_for(store, limits=limits)) as client:
        preflight = client.options(f"{ACME}/tags", headers=PREFLIGHT)
        assert preflight.headers["access-control-allow-methods"] == "GET, POST, PATCH, DELETE"
        answer = client.get(f"{ACME}/nope", headers=ORIGIN)
        assert answer.headers["access-control-allow-origin"] == "https://finops.example"
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        operations = [each for path in client.get("/openapi.json").json()["paths"].values() for each in path.values()]
        documented = {
            name for each in operations for answer in each["responses"].values() for name in answer.get("headers", {})
        }
        assert documented >= {"ETag", "Location", "X-Cost-Categories-Version", "X-Currency-Rates", "X-Reconciled"}
        assert set(exposed) == documented | {"Retry-After", "WWW-Authenticate"}
        other = client.get("/health", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


def test_a_worker_only_says_that_it_is_alive(store: TenantStore) -> None:
    """A worker responds to `/health`, but has no API."""
    with client_of(services_for(store, mode="worker")) as client:
        assert client.get("/health").json() == {"status": "ok", "version": "1.2.3"}
        assert client.get("/api/v1/tenants").status_code == 404


@pytest.fixture(scope="module")
def app(store: TenantStore) -> FastAPI:
    """The application, without a server."""
    return create_app(services_for(store))


def test_every_operation_is_described(app: FastAPI) -> None:
    """Each operation has a summary, a description, a response with a schema, and its errors; the framework's own errors
    do not appear."""
    document = app.openapi()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["description"], where
            responses = operation["responses"]
            assert "400" in responses, where
            assert "422" not in responses, where
            for status, response in responses.items():
                if status == "304":
                    assert "content" not in response, where
                elif status.startswith("2"):
                    assert status == "204" or response["content"], where
                else:
                    assert list(response["content"]) == ["application/problem+json"], where
            for parameter in operation.get("parameters", []):
                assert parameter["description"], f"{where} {parameter['name']}"


def test_every_reference_leads_somewhere(app: FastAPI) -> None:
    """The document defines every schema that it refers to."""
    document = app.openapi()
    text = str(document)
    names = {piece.split("'")[0] for piece in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])
    assert "$defs" not in text
