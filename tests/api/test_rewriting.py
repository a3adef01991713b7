"""Below a path that a proxy passes on, everything is where it is without one, and says so."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI, Request

from chargeback.api.rewriting import PathPrefix, prefix_of
from chargeback.api.services import ApiLimits
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, known
from tests.api.routes.test_pipeline import Runner
from tests.support.serving import client_of, served, services_for

PREFIX = "/apps/chargeback"
AS_BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def prefixed(store: TenantStore) -> Iterator[httpx.Client]:
    """A client of a service with a prefix; its paths are given in full."""
    limits = ApiLimits(path_prefix=PREFIX)
    with client_of(services_for(store, limits=limits, pipeline=Runner())) as client:
        yield client


@pytest.fixture(scope="module")
def echo() -> Iterator[httpx.Client]:
    """Open a client of an application that responds with the received paths."""
    app = FastAPI()

    async def _paths(request: Request) -> dict[str, str]:
        return {
            "path": request.scope["path"],
            "raw": request.scope["raw_path"].decode(),
            "prefix": prefix_of(request.scope),
        }

    app.add_api_route("/{rest:path}", _paths)
    app.add_middleware(PathPrefix, prefix=PREFIX)
    with served(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


@pytest.mark.parametrize(
    ("sent", "arrives", "prefix"),
    [
        ("/apps/chargeback/", "/", PREFIX),
        ("/apps/chargeback/api/a%2Fb", "/api/a%2Fb", PREFIX),
        ("/apps/chargeback/a/../b", "/a/../b", PREFIX),
        ("/apps/chargeback/%C3%BC/x", "/%C3%BC/x", PREFIX),
        ("/apps/chargeback//a", "//a", PREFIX),
        ("/apps/chargeback/apps/chargeback/a", "/apps/chargeback/a", PREFIX),
        ("/health", "/health", ""),
        ("/apps/chargebacks/a", "/apps/chargebacks/a", ""),
        ("/apps/%63hargeback/a", "/apps/%63hargeback/a", ""),
        ("/Apps/chargeback/a", "/Apps/chargeback/a", ""),
        ("/x/apps/chargeback/a", "/x/apps/chargeback/a", ""),
    ],
)
def test_the_rest_of_the_path_arrives_as_it_was_sent(echo: httpx.Client, sent: str, arrives: str, prefix: str) -> None:
    """The prefix goes once, from the beginning, in exactly its own spelling; nothing is decoded or resolved."""
    connection = http.client.HTTPConnection(echo.base_url.host, echo.base_url.port, timeout=30)
    connection.putrequest("GET", sent)
    connection.endheaders()
    found = json.loads(connection.getresponse().read())
    connection.close()
    assert (found["raw"], found["prefix"]) == (arrives, prefix)
    assert found["path"] == unquote(arrives)


def test_the_prefix_alone_leads_to_its_slash(prefixed: httpx.Client) -> None:
    """The pages name their files by relative addresses, which begin behind the last slash."""
    answer = prefixed.get(PREFIX, headers=AS_BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (308, "chargeback/")
    followed = prefixed.get(PREFIX, headers=AS_BROWSER, follow_redirects=True)
    assert [str(each.url.path) for each in [*followed.history, followed]] == [PREFIX, f"{PREFIX}/", f"{PREFIX}/ui/"]


@pytest.mark.parametrize(
    "path", ["/health", "/metrics", "/docs", "/docs/start.js", "/openapi.json", "/api/v1/tenants", f"{ACME}/costs"]
)
def test_everything_is_served_with_and_without(prefixed: httpx.Client, path: str) -> None:
    """Through the proxy with the prefix, for probes without it."""
    for prefix in (PREFIX, ""):
        assert prefixed.get(prefix + path).status_code == 200
    assert prefixed.get(PREFIX + PREFIX + path).status_code == 404


def test_ids_keep_their_slashes(prefixed: httpx.Client, store: TenantStore) -> None:
    """An id with an encoded slash is one part of the path."""
    known(store, resources=["topics/a b", "topics"])
    for path in ("topics%2Fa%20b", "topics/a%20b"):
        answer = prefixed.get(f"{PREFIX}{ACME}/entities/resource/{path}/tags")
        assert (answer.status_code, answer.json()) == (200, [])


def test_a_run_says_where_its_state_is(prefixed: httpx.Client) -> None:
    """`Location` begins as the request did."""
    for prefix in (PREFIX, ""):
        answer = prefixed.post(f"{prefix}{ACME}/pipeline/run")
        assert (answer.status_code, answer.headers["location"]) == (202, f"{prefix}{ACME}/pipeline/status")
        assert prefixed.get(answer.headers["location"]).status_code == 200


def test_the_document_says_where_the_paths_begin(prefixed: httpx.Client) -> None:
    """As a server of OpenAPI, where the request came with the prefix."""
    plain = prefixed.get("/openapi.json").json()
    assert "servers" not in plain
    assert prefixed.get(f"{PREFIX}/openapi.json").json() == plain | {"servers": [{"url": PREFIX}]}


def test_problems_name_the_path_that_was_asked(prefixed: httpx.Client) -> None:
    """Reader and log of the proxy know the path with the prefix; what is counted is the route."""
    assert prefixed.get(f"{PREFIX}{ACME}/costs").status_code == 200
    detail = prefixed.get(f"{PREFIX}/nowhere").json()["detail"]
    assert detail == f"Nothing found at {PREFIX}/nowhere; {PREFIX}/docs lists the endpoints."
    wrong = prefixed.put(f"{PREFIX}/api/v1/tenants")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")
    assert f"not allowed at {PREFIX}/api/v1/tenants" in wrong.json()["detail"]
    assert f'route="{ACME.replace("acme", "{tenant_name}")}/costs"' in prefixed.get("/metrics").text
    assert "apps" not in prefixed.get("/metrics").text
