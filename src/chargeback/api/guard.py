"""Reject requests that a web page of another site could make a browser send.

A browser sends the requests of any page from inside the network, with the credentials for a proxy. Two checks run
before anything else:

- ``Host`` must be a name of the service (:class:`AllowedHosts`), except for ``/health``, which has no data of tenants.
- A request that may change something must come from the service's own pages, from an origin listed in
  ``api.cors_origins``, or from a program that is not a browser. Browsers send the origin of a page in
  ``Sec-Fetch-Site`` (Fetch Metadata) and ``Origin`` (Fetch standard); a page cannot change either.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Collection, Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from chargeback.api.problems import foreign_origin, unknown_host
from chargeback.settings import is_loopback

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]*)?")

#: The entry of ``api.allowed_hosts`` that allows every name.
ANY = "*"


class AllowedHosts:
    """The hosts that a ``Host`` header may name, on any port.

    ``localhost`` and loopback addresses are always allowed. A service that listens on another address than the
    loopback also allows that address, every other IP address and every name without a dot: none of them can be
    registered by a stranger. ``names`` adds host names; ``*.example.com`` stands for all names below ``example.com``.
    """

    def __init__(self, names: Iterable[str] = (), listens_on: str = "127.0.0.1") -> None:
        entries = {name.lower().rstrip(".") for name in names}
        self._listens_on = listens_on.lower()
        self._is_local = is_loopback(listens_on)
        self._any = ANY in entries
        self._suffixes = tuple(name.removeprefix("*") for name in entries if name.startswith("*."))
        self._names = entries

    def allow(self, host: str) -> bool:
        """Return whether a request whose ``Host`` header is ``host`` is accepted."""
        name = host_name(host)
        if name is None:
            return False
        if self._any or name in self._names or is_loopback(name):
            return True
        if name.endswith(self._suffixes):
            return True
        return not self._is_local and (name == self._listens_on or "." not in name or _address(name) is not None)


def needs_names(listens_on: str, names: Iterable[str]) -> bool:
    """Return whether a service that listens on ``listens_on`` needs configured names.

    >>> needs_names("127.0.0.1", []), needs_names("0.0.0.0", []), needs_names("0.0.0.0", ["costs.example.com"])
    (False, True, False)
    """
    return not is_loopback(listens_on) and not list(names)


def host_name(host: str) -> str | None:
    """Return the name or address in a ``Host`` header, in lower case and without its port; None if it has none.

    >>> host_name("Example.COM:8080"), host_name("[::1]:8080"), host_name("a@b"), host_name("x:y")
    ('example.com', '::1', None, None)
    """
    match = _HOST.fullmatch(host.strip().lower())
    return match and (match["address"] or match["name"].removesuffix("."))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


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
            self._report(scope, 421, host)
            await unknown_host(host)(scope, receive, send)
        elif scope["method"] not in _SAFE_METHODS and not self._may_write(headers):
            self._report(scope, 403, headers.get("origin") or "unknown")
            await foreign_origin(headers.get("origin"))(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _report(self, scope: Scope, status: int, sender: str) -> None:
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
