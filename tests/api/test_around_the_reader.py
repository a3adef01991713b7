"""Routes read tenant data only through the reader, which applies the caller's scope.

A route gets a tenant without access to its facts, and only dependencies that are known. The exceptions are listed here,
with the reason.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

import chargeback.api
from chargeback.access.caller import Right
from chargeback.api import dependencies, parameters, preconditions, tenant_requests
from chargeback.api.app import create_app
from chargeback.api.authentication import authenticated
from chargeback.api.authorisation import RequiredAccess, api_routes, authorise
from chargeback.api.dependencies import ServicesDep, TenantDep
from chargeback.api.parameters import CommonParameters
from chargeback.api.routes import topic_attributions
from chargeback.api.routing import Routes
from chargeback.api.services import Services
from chargeback.api.tenant_requests import Control, Facts
from chargeback.store.tenant import TenantStore
from tests.support.serving import services_for

API = Path(chargeback.api.__file__).parent
ROUTES = list(api_routes(create_app(Services("1", "both")).routes))
#: The tenant data that routes receive.
REQUESTS = [
    getattr(tenant_requests, name)
    for name in ("Facts", "Control", "Entities", "Versioned", "Change", "Calculation", "Export")
]
#: The allowed dependencies of a route about a tenant. Those that read facts do so within the caller's scope.
KNOWN = frozenset(
    {
        *(each.__metadata__[0].dependency for each in REQUESTS),
        topic_attributions._topic_facts,
        topic_attributions._with_topics,
        dependencies._tenant,
        dependencies._access,
        authorise,
        authenticated,
        preconditions._preconditions,
    }
)
#: Routes about a tenant that get the request itself, and why.
WITH_THE_REQUEST = {"run_pipeline": "the address of the status of the run"}
#: Attributes and functions that give access to unscoped data, and the modules that may use them.
DOORS = {
    # The storage with all facts: an explanation recalculates a whole line and the service restricts the result;
    # readiness checks whether the tenant has data; a comparison of two instants gives its second reader the scope of
    # the first.
    "whole_store": {
        *("executor", "tenant_requests"),
        *("routes/explain", "routes/readiness", "routes/revisions", "routes/shadows"),
    },
    # Readers that are opened outside the context of a request (``executor``).
    "version_reader": {"executor", "routes/revisions"},
    "open_reader": {"executor"},
    "unscoped": set(),
    # All tenants: to find those that the caller may read, or for the service as a whole.
    "tenants": {
        *("app", "app_factory", "authentication", "authorisation", "dependencies", "metrics", "refusals"),
        *("routes/chargeback_metrics", "routes/me", "routes/readiness", "routes/tenants"),
    },
}


def ways_around(route: APIRoute) -> Iterator[str]:
    """Yield the dependencies of a route that could read data of a tenant without the scope of the caller."""
    required = RequiredAccess.of(route)
    if required is None:
        yield "it does not declare what it needs"
    elif "{tenant_name}" not in route.path or required.whole:
        return
    if route.dependant.request_param_name is not None and route.name not in WITH_THE_REQUEST:
        yield "the request"
    for each in route.dependant.dependencies:
        if each.call not in KNOWN and inspect.getmodule(each.call) is not parameters:
            yield getattr(each.call, "__qualname__", repr(each.call))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{min(route.methods)} {route.path}")
def test_routes_read_within_the_scope(route: APIRoute) -> None:
    """Every route that a caller with a scope may request has only dependencies that apply the scope."""
    assert list(ways_around(route)) == []


async def _honest(
    _facts: Facts, _control: Control, _tenant: TenantDep, _params: Annotated[CommonParameters, Query()]
) -> Response:
    return Response()


async def _with_services(_services: ServicesDep, _tenant: TenantDep) -> Response:
    return Response()


async def _with_the_request(_request: Request, _tenant: TenantDep) -> Response:
    return Response()


async def _store_of(request: Request) -> TenantStore:
    store: TenantStore = request.app.state.services.tenants["acme"].store
    return store


async def _with_a_dependency(_store: Annotated[TenantStore, tenant_requests.Depends(_store_of)]) -> Response:
    return Response()


def test_a_way_around_is_found() -> None:
    """The check finds routes that could read without the scope, whichever dependency they use."""
    router = Routes(prefix="/tenants/{tenant_name}", tags=[])
    endpoints: tuple[Any, ...] = (_honest, _with_services, _with_the_request, _with_a_dependency)
    for number, endpoint in enumerate(endpoints):
        router.get(f"/{number}", needs=Right.READ)(endpoint)
    router.get("/whole", needs=Right.READ, whole=True)(_with_services)
    forgotten = APIRouter()
    forgotten.get("/tenants/{tenant_name}/forgotten")(_honest)
    routes = [*router.routes, *forgotten.routes]
    found = [list(ways_around(route)) for route in routes if isinstance(route, APIRoute)]
    assert found == [[], ["_services"], ["the request"], ["_store_of"], [], ["it does not declare what it needs"]]


def _uses(name: str) -> set[str]:
    """Return the modules of the API that use a name as an attribute, or import it."""
    found = set()
    for file in API.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            imported = isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}
            if imported or (isinstance(node, ast.Attribute) and node.attr == name):
                found.add(str(file.relative_to(API).with_suffix("")))
    return found


@pytest.mark.parametrize("name", sorted(DOORS))
def test_the_fence_is_opened_where_it_is_listed(name: str) -> None:
    """Every use of unscoped data is listed."""
    assert _uses(name) == DOORS[name]


def test_the_fence(store: TenantStore) -> None:
    """The tenant of a route has its control database and no access to facts."""
    tenant = services_for(store).tenants["acme"]
    fenced = tenant.fenced()
    assert (fenced.tenant_name, fenced.store.control) == (tenant.tenant_name, tenant.store.control)
    assert fenced.whole_store is tenant.store
    tables: Any = fenced.store.facts
    with pytest.raises(AttributeError, match="facts are read through a reader"):
        tables.snapshot("chargebacks")


#: Routes that check whether the caller has a scope, because they return more than rows and sums; see decision 16.
SCOPE_AWARE = {
    *("aggregate", "budgets", "cost_categories", "costs", "explain", "findings", "me", "notes", "pipeline", "policies"),
    *("search", "tenants", "views"),
}


def test_routes_that_know_of_scopes_are_listed() -> None:
    """Only the listed routes check whether the caller has a scope."""
    asks = re.compile(r"scope is (?:not )?None|sees_everything")
    found = {file.stem for file in (API / "routes").glob("*.py") if asks.search(file.read_text(encoding="utf-8"))}
    assert found == SCOPE_AWARE


def test_a_question_about_rows_has_parameters() -> None:
    """A route that reads rows needs a query model, because its parameters are part of the ETag."""
    with pytest.raises(TypeError, match="_without reads rows: it needs a query model"):

        @Routes(tags=[]).get("/tenants/{tenant_name}/rows", needs=Right.READ)
        def _without(_facts: Facts) -> Response:
            return Response()
