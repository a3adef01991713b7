"""Routes: what is read when they are declared, and when they are first used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Annotated

import pytest
from fastapi import FastAPI, Query
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse, Response

from chargeback.api.authorisation import Access
from chargeback.api.parameters import StrictModel
from chargeback.api.routing import Routes

#: An attribute that FastAPI sets when it has read the parameters of a function.
READ = "dependant"


class _Named(StrictModel):
    name: str = ""


def _greet(params: Annotated[_Named, Query()]) -> Response:
    return PlainTextResponse(params.name)


def _routes(*paths: str) -> list[APIRoute]:
    router = Routes(tags=[], root="")
    for path in paths:
        router.get(path, needs=Access.PUBLIC)(_greet)
    return [route for route in router.routes if isinstance(route, APIRoute)]


def test_a_route_is_completed_when_it_is_used() -> None:
    """A request completes the route that it matches and no other; a path without a route completes none, and neither do
    the documented headers."""
    routes = _routes("/used", "/unused")
    assert [404 in route.responses for route in routes] == [True, True]
    app = FastAPI(openapi_url=None)
    app.router.routes.extend(routes)
    with TestClient(app) as client:
        assert client.get("/neither").status_code == 404
        assert [READ in vars(route) for route in routes] == [False, False]
        client.post("/used")
    assert [READ in vars(route) for route in routes] == [True, False]
    assert [(route.path, route.methods) for route in routes] == [("/used", {"GET"}), ("/unused", {"GET"})]


def test_a_route_is_completed_once_for_all_threads() -> None:
    """Threads that need a route at the same time get the same completed one."""
    for route in _routes(*(f"/{number}" for number in range(20))):
        together = Barrier(4)

        def _dependant(route: APIRoute = route, together: Barrier = together) -> object:
            together.wait(60)
            return route.dependant

        with ThreadPoolExecutor(4) as pool:
            found = [each.result() for each in [pool.submit(_dependant) for _ in range(4)]]
        assert all(each is found[0] for each in found)
        assert found[0] is vars(route)[READ]


def test_a_route_lacks_what_it_lacks() -> None:
    """An attribute that routes do not have is an error, before and after the route is completed."""
    (route,) = _routes("/one")
    for _ in range(2):
        with pytest.raises(AttributeError, match="nonsense"):
            route.nonsense  # type: ignore[attr-defined]  # noqa: B018
