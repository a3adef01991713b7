"""Create the application of a configuration."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fastapi import FastAPI

from chargeback import __version__
from chargeback.api.app import create_app
from chargeback.api.authentication import authenticate_by
from chargeback.api.guard import AllowedHosts, needs_names
from chargeback.api.services import ApiLimits, Services
from chargeback.config import Configuration, Tenant
from chargeback.emitters.prometheus import Exposition, exposition_of
from chargeback.errors import PluginError
from chargeback.model.days import Clock, utc_now
from chargeback.pipeline.simulations import Simulations, TenantSimulator
from chargeback.recompute.rules import AllocationRules, RulesInForce
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.server import ServerLimits
from chargeback.store.tenant import open_store

if TYPE_CHECKING:  # it imports all that runs need, and a service in mode `api` runs nothing
    from chargeback.pipeline.engine import Engine

log = logging.getLogger(__name__)

_NO_NAMES = (
    "listening on %s without api.allowed_hosts: requests are accepted for IP addresses, localhost and names without a "
    "dot; set api.allowed_hosts to the host names of the service, such as [costs.example.com]"
)


def create_app_from(
    configuration: Configuration, mode: str, pipeline: Engine | None, clock: Clock = utc_now
) -> FastAPI:
    """Return the HTTP application that serves the tenants of ``configuration``.

    ``mode`` is ``api``, ``worker`` or ``both``; ``pipeline`` starts triggered runs, or is None; ``clock`` returns the
    current time. No storage is accessed before the first request.
    """
    api = configuration.api
    simulations = Simulations(configuration.logging, configuration.secrets(), clock)
    tenants = {}
    for name, tenant in configuration.tenants.items():
        store = open_store(tenant, limits=_interactive(api.request_timeout_seconds))
        rules = _rules(tenant)
        tenants[name] = TenantView.of(
            tenant,
            store,
            rules or AllocationRules(),
            pipeline=pipeline,
            simulator=TenantSimulator(tenant, store, simulations),
            exposition=_exposition(tenant),
            in_force=None if rules is None else RulesInForce(tenant, store.control, rules),
        )
    limits = ApiLimits(
        api.request_timeout_seconds,
        api.enable_cors,
        tuple(api.cors_origins),
        query_memory=api.query_memory,
        query_threads=api.query_threads,
        hosts=AllowedHosts(api.allowed_hosts, api.host),
        page=api.page,
        path_prefix=api.path_prefix,
    )
    if needs_names(api.host, api.allowed_hosts):
        log.warning(_NO_NAMES, api.host)
    runs = None if pipeline is None else pipeline.registry
    return create_app(Services(__version__, mode, limits, tenants, runs, clock, authenticate_by(configuration.access)))


def _interactive(request_timeout: float) -> ServerLimits:
    """Return the limits for interactive work: waiting for a server that hangs ends with the request."""
    return ServerLimits(connect=3, lock=min(10, request_timeout), statement=request_timeout, silence=request_timeout)


def _rules(tenant: Tenant) -> AllocationRules | None:
    """Return the rules by which the days of a tenant are calculated; None without a working plugin: then only recorded
    policies are known."""
    try:
        return AllocationRules.of(tenant)
    except PluginError as error:
        log.error("tenant %s: its policies are not known, so amounts cannot be explained: %s", tenant.name, error)
        return None


def _exposition(tenant: Tenant) -> Exposition | None:
    """Return the metrics of a tenant's emitter for Prometheus, if it has one; at most one emitter exposes metrics."""
    shown = (exposition_of(each.context(tenant.name, tenant.settings), each.params) for each in tenant.emitters)
    return next(filter(None, shown), None)
