"""What the API needs from the rest of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from chargeback.api.hosts import AllowedHosts
from chargeback.model.days import Clock, utc_now
from chargeback.service.tenant_view import TenantView


@dataclass(frozen=True)
class ApiLimits:
    """How the API is served: its time limit in seconds, which web pages of other origins may use it, and the host
    names that it answers for.

    ``query_memory`` (bytes) and ``query_threads`` bound the query engine; None leaves them to the machine.
    """

    request_timeout_seconds: float = 30
    enable_cors: bool = False
    cors_origins: tuple[str, ...] = ()
    query_memory: int | None = None
    query_threads: int | None = None
    hosts: AllowedHosts = field(default_factory=AllowedHosts)


@dataclass(frozen=True)
class Services:
    """Everything behind the API. ``mode`` is ``api``, ``worker`` or ``both``; ``runs`` are the metrics of the runs of
    this process, where it has any; ``clock`` tells the present."""

    version: str
    mode: str
    api: ApiLimits = ApiLimits()
    tenants: Mapping[str, TenantView] = field(default_factory=dict)
    runs: CollectorRegistry | None = None
    clock: Clock = utc_now
