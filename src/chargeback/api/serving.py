"""The application of a configuration."""

from __future__ import annotations

from fastapi import FastAPI

from chargeback import __version__
from chargeback.api.app import create_app
from chargeback.api.services import ApiLimits, Services, TenantView
from chargeback.config import Configuration, Tenant
from chargeback.emitters.prometheus import Exposition, exposition_of
from chargeback.pipeline.engine import Engine
from chargeback.store.tenant import open_store


def create_app_from(configuration: Configuration, mode: str, pipeline: Engine | None) -> FastAPI:
    """The HTTP application that serves the tenants of ``configuration``.

    ``mode`` is ``api``, ``worker`` or ``both``; ``pipeline`` starts the runs that are asked for, where there is one.
    No storage is touched before the first request.
    """
    api = configuration.api
    tenants = {
        name: TenantView(
            tenant_name=name,
            tenant_id=tenant.settings.tenant_id,
            ecosystem=tenant.settings.ecosystem,
            lookback_days=tenant.settings.lookback_days,
            store=open_store(tenant),
            pipeline=pipeline,
            topic_attribution_status=tenant.topic_status.value,
            topic_attribution_error=tenant.topic_error,
            exposition=_exposition(tenant),
        )
        for name, tenant in configuration.tenants.items()
    }
    limits = ApiLimits(api.request_timeout_seconds, api.enable_cors, tuple(api.cors_origins))
    runs = None if pipeline is None else pipeline.registry
    return create_app(Services(__version__, mode, limits, tenants, runs))


def _exposition(tenant: Tenant) -> Exposition | None:
    """What Prometheus may scrape of a tenant: one emitter at most shows something."""
    shown = (exposition_of(each.context(tenant.name, tenant.settings), each.params) for each in tenant.emitters)
    return next(filter(None, shown), None)
