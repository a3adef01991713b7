"""Reject requests that a web page of another site could make a browser send.

The service has no users, and a browser sends a page's requests from inside the network, with the credentials for a
proxy. Two checks run before anything else:

- ``Host`` must be a name of the service (:mod:`chargeback.api.hosts`), except for ``/health``, which has no data of
tenants.
- A request that may change something must come from the service's own pages, from an origin listed in
  ``api.cors_origins``, or from a program that is not a browser. Browsers send the origin of a page in
  ``Sec-Fetch-Site`` (Fetch Metadata) and ``Origin`` (Fetch standard); a page cannot change either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from chargeback.api.hosts import ANY, AllowedHosts
from chargeback.api.problems import foreign_origin, unknown_host

log = logging.getLogger(__name__)

#: Requested by probes under any name or address.
_ANY_HOST = frozenset({"/health"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OWN_SITE = frozenset({"same-origin", "none"})
_MAX_LOGGED_NAMES = 100


class RequestGuard:
    """Middleware that returns 421 for an unknown ``Host``, and 403 for changes sent by pages of other origins.

    ``origins`` are the origins of other sites that may use the API; ``*`` means all of them. ``on_refusal`` is called
    with the scope of a refused request, the status, and the host or origin that was refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: AllowedHosts,
        origins: Collection[str] = (),
        on_refusal: Callable[[Scope, int, str], None] | None = None,
    ) -> None:
        self._app = app
        self._on_refusal = on_refusal
        self._hosts = hosts
        self._origins = frozenset(origins)
        self._logged: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or reject one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if (host := self._foreign_host(scope, headers)) is not None:
            self._tell(scope, 421, host)
            await unknown_host(host)(scope, receive, send)
        elif scope["method"] not in _SAFE_METHODS and not self._may_write(headers):
            self._tell(scope, 403, headers.get("origin") or "unknown")
            await foreign_origin(headers.get("origin"))(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _tell(self, scope: Scope, status: int, sender: str) -> None:
        if self._on_refusal is not None:
            self._on_refusal(scope, status, sender)

    def _foreign_host(self, scope: Scope, headers: Headers) -> str | None:
        """Return the ``Host`` of the request if it is not allowed. Every browser sends one."""
        sent = headers.getlist("host")
        if scope["path"] in _ANY_HOST or not sent or (len(sent) == 1 and self._hosts.allow(sent[0])):
            return None
        host = ", ".join(sent)[:200]
        if host not in self._logged and len(self._logged) < _MAX_LOGGED_NAMES:
            self._logged.add(host)
            log.warning(
                "rejecting requests for host %r; if this is the service's name, add it to api.allowed_hosts", host
            )
        return host

    def _may_write(self, headers: Headers) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and (ANY in self._origins or origin in self._origins):
            return True
        if site is not None:
            return site in _OWN_SITE
        return origin is None or _host_of(origin) == headers.get("host", "").lower()


def _host_of(origin: str) -> str:
    """Return host and port of an origin, as in a ``Host`` header; None for an opaque origin (``null``)."""
    scheme, _, host = origin.lower().partition("://")
    return host if scheme in {"http", "https"} and host else "null"
