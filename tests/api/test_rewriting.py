"""Below a path of a proxy, everything works with and without the prefix, and addresses contain it."""

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
    """Open a client of an application that returns the paths it received."""
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
    """The prefix is removed once, at the start, if it is spelt exactly; nothing is decoded or resolved."""
    connection = http.client.HTTPConnection(echo.base_url.host, echo.base_url.port, timeout=30)
    connection.putrequest("GET", sent)
    connection.endheaders()
    found = json.loads(connection.getresponse().read())
    connection.close()
    assert (found["raw"], found["prefix"]) == (arrives, prefix)
    assert found["path"] == unquote(arrives)


def test_the_prefix_alone_leads_to_its_slash(prefixed: httpx.Client) -> None:
    """The prefix without a slash redirects to the prefix with one, because the pages use relative addresses."""
    answer = prefixed.get(PREFIX, headers=AS_BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (308, "chargeback/")
    followed = prefixed.get(PREFIX, headers=AS_BROWSER, follow_redirects=True)
    assert [str(each.url.path) for each in [*followed.history, followed]] == [PREFIX, f"{PREFIX}/", f"{PREFIX}/ui/"]


@pytest.mark.parametrize(
    "path", ["/health", "/metrics", "/docs", "/docs/start.js", "/openapi.json", "/api/v1/tenants", f"{ACME}/costs"]
)
def test_everything_is_served_with_and_without(prefixed: httpx.Client, path: str) -> None:
    """Paths work with the prefix, and without it for probes."""
    for prefix in (PREFIX, ""):
        assert prefixed.get(prefix + path).status_code == 200
    assert prefixed.get(PREFIX + PREFIX + path).status_code == 404


def test_ids_keep_their_slashes(prefixed: httpx.Client, store: TenantStore) -> None:
    """An encoded slash does not split an id."""
    known(store, resources=["topics/a b", "topics"])
    for path in ("topics%2Fa%20b", "topics/a%20b"):
        answer = prefixed.get(f"{PREFIX}{ACME}/entities/resource/{path}/tags")
        assert (answer.status_code, answer.json()) == (200, [])


def test_a_run_says_where_its_state_is(prefixed: httpx.Client) -> None:
    """`Location` has the prefix if the request had it."""
    for prefix in (PREFIX, ""):
        answer = prefixed.post(f"{prefix}{ACME}/pipeline/run")
        assert (answer.status_code, answer.headers["location"]) == (202, f"{prefix}{ACME}/pipeline/status")
        assert prefixed.get(answer.headers["location"]).status_code == 200


def test_the_document_says_where_the_paths_begin(prefixed: httpx.Client) -> None:
    """If the request had the prefix, the OpenAPI document has it as a server."""
    plain = prefixed.get("/openapi.json").json()
    assert "servers" not in plain
    assert prefixed.get(f"{PREFIX}/openapi.json").json() == plain | {"servers": [{"url": PREFIX}]}


def test_problems_name_the_path_that_was_asked(prefixed: httpx.Client) -> None:
    """Error messages contain the requested path with the prefix; metrics count the route."""
    assert prefixed.get(f"{PREFIX}{ACME}/costs").status_code == 200
    detail = prefixed.get(f"{PREFIX}/nowhere").json()["detail"]
    assert detail == f"Nothing found at {PREFIX}/nowhere; {PREFIX}/docs lists the endpoints."
    wrong = prefixed.put(f"{PREFIX}/api/v1/tenants")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")
    assert f"not allowed at {PREFIX}/api/v1/tenants" in wrong.json()["detail"]
    assert f'route="{ACME.replace("acme", "{tenant_name}")}/costs"' in prefixed.get("/metrics").text
    assert "apps" not in prefixed.get("/metrics").text
