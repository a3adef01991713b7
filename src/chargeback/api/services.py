"""The services that the API uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from starlette.requests import Request

from chargeback.access.caller import EVERYBODY, Caller
from chargeback.api.guard import AllowedHosts
from chargeback.model.days import Clock, utc_now
from chargeback.reports.tenant_view import TenantView

#: Returns the caller of a request.
Authenticate = Callable[[Request], Awaitable[Caller]]


async def everybody(_request: Request) -> Caller:
    """Return the caller of every request where authentication is off."""
    return EVERYBODY


@dataclass(frozen=True)
class ApiLimits:
    """The limits of the API: the request timeout in seconds, the allowed origins of web pages, and the host names of
    the service.

    ``query_memory`` (bytes) and ``query_threads`` limit the query engine; None means defaults of the machine. ``page``
    is whether the browser page is served; ``path_prefix`` is the path below which a proxy serves everything, or None.
    """

    request_timeout_seconds: float = 30
    enable_cors: bool = False
    cors_origins: tuple[str, ...] = ()
    query_memory: int | None = None
    query_threads: int | None = None
    hosts: AllowedHosts = field(default_factory=AllowedHosts)
    page: bool = True
    path_prefix: str | None = None


@dataclass(frozen=True)
class Services:
    """The services behind the API. ``mode`` is ``api``, ``worker`` or ``both``; ``runs`` are the metrics of the runs of
    this process, if any; ``clock`` returns the current time; ``authenticate`` returns the caller of a request."""

    version: str
    mode: str
    api: ApiLimits = ApiLimits()
    tenants: Mapping[str, TenantView] = field(default_factory=dict)
    runs: CollectorRegistry | None = None
    clock: Clock = utc_now
    authenticate: Authenticate = everybody
