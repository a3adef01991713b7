"""`GET /metrics`: the service's own metrics, as OpenMetrics text.

There are three kinds: requests of this process; runs of this process, if any; and the state of every tenant, read from
its control database on request. The last kind is the same in every process.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chargeback.api.authentication import authenticated
from chargeback.api.authorisation import require_whole_tenant
from chargeback.api.executor import RequestExecutor, control_reader
from chargeback.api.limits import CANCELLATION
from chargeback.api.services import Services
from chargeback.errors import StorageError
from chargeback.model.days import start_of_day, utc_now
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.budgets import budget_ratios
from chargeback.store.control.conditions import CONDITIONS, read_conditions
from chargeback.store.control.runs import TenantHealth, read_health
from chargeback.store.queries.engine import CancellationToken

disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of series, and are of no use

PATH: Final = "/metrics"

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """The metrics of the requests of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.durations = Histogram(
            "chargeback_http_request_duration_seconds",
            "Duration of requests, from the first byte received to the last byte sent.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.in_progress = Gauge(
            "chargeback_http_requests_in_progress", "Requests in progress.", registry=self.registry
        )

    def watch(self, executor: RequestExecutor) -> None:
        """Export how much work waits for a thread."""
        waiting = Gauge(
            "chargeback_http_work_waiting",
            "Work of requests waiting for a thread.",
            ("pool",),
            registry=self.registry,
        )
        for pool in executor.POOLS:
            waiting.labels(pool).set_function(partial(executor.waiting, pool))


class MetricsMiddleware:
    """Middleware that measures every request, including refused and timed-out ones."""

    def __init__(self, app: ASGIApp, request_metrics: RequestMetrics) -> None:
        self._app = app
        self._request_metrics = request_metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 499  # the client disconnected before the response

        async def _watching(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = time.perf_counter()
        self._request_metrics.in_progress.inc()
        try:
            await self._app(scope, receive, _watching)
        finally:
            self._request_metrics.in_progress.dec()
            method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
            self._request_metrics.durations.labels(method, _route_of(scope), status).observe(
                time.perf_counter() - began
            )


def _route_of(scope: Scope) -> str:
    """Return the route of a request as documented, never text that was chosen by a client."""
    return str(getattr(scope.get("route"), "path", None) or "none")


async def metrics(request: Request) -> Response:
    """Return all metrics as text.

    Raises:
        Forbidden: the caller sees no tenant as a whole.
        Unauthenticated: the request is not authenticated.
    """
    services: Services = request.app.state.services
    require_whole_tenant(await authenticated(request), services)
    request_metrics: RequestMetrics = request.app.state.request_metrics
    executor: RequestExecutor = request.app.state.executor
    context = executor.context_for(request.scope[CANCELLATION])
    found = await executor.watch(services.tenants.values(), _read_state)
    states = [None if isinstance(each, StorageError) else each for each in found]
    registries = [request_metrics.registry, *([services.runs] if services.runs else [])]
    everything = _CombinedRegistry(registries, list(_families(services, states)))
    body = await context.run_blocking(None, lambda: generate_latest(everything))  # type: ignore[no-untyped-call]
    return Response(body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@dataclass(frozen=True)
class _TenantState:
    """The state of a tenant in its control database."""

    health: TenantHealth
    budgets: Mapping[str, tuple[float, float | None]]
    open: Mapping[str, int]


def _read_state(tenant: TenantView, token: CancellationToken) -> _TenantState:
    with control_reader(tenant, token) as connection:
        holding = read_conditions(connection, utc_now())
        kinds = Counter(each.event["subject"].partition("/")[0] for each in holding if each.ended_at is None)
        return _TenantState(read_health(connection), budget_ratios(connection), kinds)


class _CombinedRegistry:
    """Collect from several registries and metric families, one after the other."""

    def __init__(self, registries: Sequence[CollectorRegistry], families: Iterable[Metric]) -> None:
        self._registries = registries
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Every family."""
        for registry in self._registries:
            yield from registry.collect()
        yield from self._families


def _families(services: Services, states: Sequence[_TenantState | None]) -> Iterator[Metric]:
    """Yield the metrics of the state of every tenant; if its storage cannot be read, only that."""
    yield InfoMetricFamily("chargeback", "The service.", value={"version": services.version, "mode": services.mode})
    usable = GaugeMetricFamily(
        "chargeback_storage_usable", "Whether the control database of the tenant can be read.", labels=["tenant"]
    )
    for name, found in zip(services.tenants, states, strict=True):
        usable.add_metric([name], float(found is not None))
    yield usable
    known = [(name, found) for name, found in zip(services.tenants, states, strict=True) if found is not None]
    for place, (metric, text) in enumerate(_OF_BUDGETS.items()):
        family = GaugeMetricFamily(metric, text, labels=["tenant", "budget"])
        for name, found in known:
            for budget, ratios in found.budgets.items():
                if (ratio := ratios[place]) is not None:
                    family.add_metric([name, budget], ratio)
        yield family
    family = GaugeMetricFamily("chargeback_open", _OPEN, labels=["tenant", "kind"])
    for name, found in known:
        for kind in CONDITIONS:
            family.add_metric([name, kind], found.open.get(kind, 0))
    yield family
    for field, text in _GAUGES.items():
        family = GaugeMetricFamily(f"chargeback_{field}", text, labels=["tenant"])
        for name, found in known:
            value = _values(found.health)[field]
            if value is not None:
                family.add_metric([name], value)
        yield family


_OPEN: Final = "Conditions that hold now and need attention, by kind."
_OF_BUDGETS: Final = {
    "chargeback_budget_ratio": "The part of the month's budget that is charged.",
    "chargeback_budget_forecast_ratio": "The part of the month's budget that the month is expected to cost.",
}
_GAUGES: Final = {
    "days_pending": "Days that are gathered, but not calculated.",
    "days_calculated": "Days that are calculated.",
    "last_calculated_date_seconds": "The start of the newest calculated day (UTC), in seconds since 1970.",
    "topic_days_due": "Days waiting for the topic overlay.",
    "lease_held": "Whether a run is in progress in any process.",
    "lease_epoch": "How often runs have taken the tenant's lease.",
    "gather_failures": "Consecutive gather failures.",
    "suspended": "Whether the tenant is suspended until a worker is restarted.",
    "last_run_failed": "Whether the last finished run failed or was incomplete.",
    "last_run_end_seconds": "When the last run ended, as seconds since 1970.",
}


def _values(found: TenantHealth) -> dict[str, float | None]:
    last_day, ended = found.last_calculated, found.last_ended_at
    return {
        "days_pending": found.pending,
        "days_calculated": found.calculated,
        "last_calculated_date_seconds": None if last_day is None else start_of_day(last_day).timestamp(),
        "topic_days_due": found.topics_due,
        "lease_held": float(found.is_running),
        "lease_epoch": found.lease_epoch,
        "gather_failures": found.gather_failures,
        "suspended": float(found.is_suspended),
        "last_run_failed": None if found.last_outcome is None else float(found.last_outcome != "completed"),
        "last_run_end_seconds": None if ended is None else ended.timestamp(),
    }
