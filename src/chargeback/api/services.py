"""What the API needs from the rest of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import CollectorRegistry

from chargeback.emitters.prometheus import Exposition
from chargeback.pipeline.events import RunRequest
from chargeback.store.tenant import TenantStore


class PipelinePort(Protocol):
    """Something that can run pipelines."""

    def trigger(self, tenant_name: str, request: RunRequest) -> None:
        """Start a run; returns when it holds the tenant's lease.

        Raises:
            LeaseHeld: a run is in progress.
            TenantSuspended: the tenant is not processed any more; the message says why.
            NoRunner: this process runs no pipelines.
            StorageError: the tenant's storage cannot be used.
        """


@dataclass(frozen=True)
class ApiLimits:
    """How the API is served: its time limit in seconds, and which web pages of other origins may use it."""

    request_timeout_seconds: float = 30
    enable_cors: bool = False
    cors_origins: tuple[str, ...] = ()


@dataclass(frozen=True)
class TenantView:
    """One tenant as the API sees it. ``pipeline`` is None where this process runs none (mode ``api``); ``exposition``
    is what Prometheus may scrape of it, if anything."""

    tenant_name: str
    tenant_id: str
    ecosystem: str
    lookback_days: int
    store: TenantStore
    pipeline: PipelinePort | None = None
    topic_attribution_status: str = "disabled"
    topic_attribution_error: str | None = None
    exposition: Exposition | None = None


@dataclass(frozen=True)
class Services:
    """Everything behind the API. ``mode`` is ``api``, ``worker`` or ``both``; ``runs`` are the metrics of the runs of
    this process, where it has any."""

    version: str
    mode: str
    api: ApiLimits = ApiLimits()
    tenants: Mapping[str, TenantView] = field(default_factory=dict)
    runs: CollectorRegistry | None = None
