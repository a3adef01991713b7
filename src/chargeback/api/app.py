"""The application: routes, middleware, OpenAPI document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from chargeback.api import metrics
from chargeback.api.authorisation import api_routes, require_declarations
from chargeback.api.documentation import add_parameters, complete, webhooks
from chargeback.api.executor import RequestExecutor
from chargeback.api.guard import RequestGuard
from chargeback.api.limits import RequestLimits
from chargeback.api.metrics import MetricsMiddleware, RequestMetrics
from chargeback.api.pages import add_pages
from chargeback.api.problems import Problem, add_handlers
from chargeback.api.refusals import RefusalLog
from chargeback.api.rewriting import HeadAsGet, PathPrefix
from chargeback.api.routes import (
    aggregate,
    anomalies,
    audit,
    billing,
    budgets,
    category_answers,
    changes,
    chargeback_metrics,
    chargebacks,
    contracts,
    cost_categories,
    costs,
    events,
    explain,
    export,
    external_costs,
    findings,
    flow,
    focus,
    forecast,
    graph,
    inventory,
    journal,
    me,
    notes,
    notifications,
    overview,
    periods,
    pipeline,
    policies,
    readiness,
    reconciliation,
    revisions,
    search,
    series,
    shadows,
    simulations,
    statements,
    tags,
    tenants,
    topic_attributions,
    topics,
    unit_costs,
    usage,
    views,
)
from chargeback.api.routes.readiness import ReadinessCache
from chargeback.api.services import Services
from chargeback.page import PageFiles

_TITLE = "Chargeback"
_DESCRIPTION = """
Query who spent what on Kafka, to the last digit.

Amounts are decimal strings. Timestamps are UTC. A date range is a range of days in the calendar of `timezone` (default
UTC), both ends included. Daily lines have the timestamp 00:00 UTC: in zones west of Greenwich they belong to the
previous day, so reconcile with an invoice in UTC. Errors are returned as `application/problem+json`. Unknown parameters
are errors, and all mistakes in a request are reported together. Callers are identified by an authenticating proxy or by
a token (`access.mode`). Tenants that the caller may not read are not found, and rows that the caller may not see are
left out. Each endpoint documents the right that it needs; callers with a scope may not use those about the whole bill.
"""

# The static paths of chargebacks must precede the path with a parameter.
_ROUTERS = (
    readiness.router,
    me.router,
    tenants.router,
    billing.router,
    overview.router,
    reconciliation.router,
    external_costs.router,
    costs.router,
    series.router,
    flow.router,
    graph.router,
    revisions.router,
    policies.router,
    simulations.router,
    shadows.router,
    budgets.router,
    contracts.router,
    forecast.router,
    notifications.router,
    anomalies.router,
    notes.router,
    usage.router,
    changes.router,
    aggregate.router,
    explain.router,
    explain.topic_router,
    chargebacks.router,
    inventory.router,
    tags.router,
    pipeline.router,
    export.router,
    focus.router,
    topic_attributions.router,
    topics.router,
    unit_costs.router,
    findings.router,
    search.router,
    views.router,
    statements.router,
    journal.router,
    periods.router,
    category_answers.router,
    cost_categories.router,
    audit.router,
    events.router,
)


def create_app(services: Services) -> FastAPI:
    """Return the HTTP application over ``services``. In mode ``worker`` it serves only `/health` and metrics.

    Raises:
        ValueError: a route does not declare what it needs.
    """

    request_metrics = RequestMetrics()

    @asynccontextmanager
    async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.executor = RequestExecutor(
            query_memory=services.api.query_memory, query_threads=services.api.query_threads
        )
        app.state.readiness = ReadinessCache()
        request_metrics.watch(app.state.executor)
        try:
            yield
        finally:
            app.state.executor.close()
            for tenant in services.tenants.values():
                tenant.store.close()

    app = FastAPI(
        title=_TITLE,
        version=services.version,
        description=_DESCRIPTION,
        lifespan=_lifespan,
        redirect_slashes=False,
        openapi_url=None,  # the pages serve it
        docs_url=None,
        redoc_url=None,
    )
    app.state.services = services
    app.state.request_metrics = request_metrics
    is_worker = services.mode == "worker"
    page = PageFiles() if services.api.page and not is_worker else None
    add_pages(app, page)
    app.add_route(metrics.PATH, metrics.metrics, methods=["GET"], include_in_schema=False)
    app.router.routes.extend(_routes(is_worker=is_worker))
    add_handlers(app)
    app.add_middleware(RequestLimits, limit=services.api.request_timeout_seconds)
    origins: tuple[str, ...] = ()
    if services.api.enable_cors:
        origins = services.api.cors_origins
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=_documented_headers(app),
        )
    app.add_middleware(HeadAsGet)
    refusals = app.state.refusals = RefusalLog(services)
    app.add_middleware(RequestGuard, hosts=services.api.hosts, origins=origins, on_refusal=refusals.note)
    app.add_middleware(MetricsMiddleware, request_metrics=request_metrics)
    if services.api.path_prefix is not None:
        app.add_middleware(PathPrefix, prefix=services.api.path_prefix)
    app.openapi = partial(_document, services.version, is_worker=is_worker)  # type: ignore[method-assign]
    return app


def _routes(*, is_worker: bool) -> Sequence[BaseRoute]:
    """Return the routes of the API. Routers would be searched one after the other, and what they include be built
    again, so these are their routes themselves.

    Raises:
        ValueError: a route does not declare what it needs.
    """
    routers = (readiness.health_router, chargeback_metrics.router, *(() if is_worker else _ROUTERS))
    routes = [route for router in routers for route in router.routes]
    require_declarations(routes)
    return routes


def _documented_headers(app: FastAPI) -> list[str]:
    """Return the response headers that routes document, and those of problems."""
    responses = [response for route in api_routes(app.routes) for response in route.responses.values()]
    named = {name for response in responses for name in response.get("headers", {})}
    return sorted(named | {"Retry-After", "WWW-Authenticate"})


@cache
def _document(version: str, *, is_worker: bool) -> dict[str, Any]:
    """Return the OpenAPI document."""
    routes = _routes(is_worker=is_worker)
    sent = () if is_worker else webhooks()
    add_parameters()
    document = get_openapi(title=_TITLE, version=version, description=_DESCRIPTION, routes=routes, webhooks=sent)
    return complete(document, Problem)
