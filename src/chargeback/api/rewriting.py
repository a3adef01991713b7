"""Middleware that rewrites requests: a path below the prefix of a proxy, and HEAD as GET.

A proxy that strips its path (`api.path_prefix`) has to decode and normalise the rest, and ids may contain `%2F` and
dots. The service strips it from the path as it was sent instead, so that the rest reaches the routes unchanged.
Requests without the prefix are served as well, because probes and Prometheus do not go through the proxy.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

#: The key of the prefix of this request in the scope; absent if the request has no prefix.
_SCOPE_KEY: Final = "chargeback.path_prefix"


def prefix_of(scope: Scope) -> str:
    """Return the prefix of a request's path, such as `/apps/chargeback`, or an empty text."""
    return str(scope.get(_SCOPE_KEY, ""))


class PathPrefix:
    """Middleware that strips ``prefix``, which begins with a slash and ends without one, once from the path.

    The prefix without a slash behind it leads to the one with a slash, because the pages name their files by relative
    addresses.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix
        self._raw = prefix.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        raw: bytes = scope.get("raw_path", b"") if scope["type"] == "http" else b""
        if raw == self._raw:
            await RedirectResponse(self._prefix.rpartition("/")[2] + "/", status_code=308)(scope, receive, send)
        elif raw.startswith(self._raw + b"/"):
            # The prefix has no percent signs: encoded and decoded it has the same length.
            size = len(self._prefix)
            inner = {**scope, "path": scope["path"][size:], "raw_path": raw[size:], _SCOPE_KEY: self._prefix}
            await self._app(inner, receive, send)
        else:
            await self._app(scope, receive, send)


class HeadAsGet:
    """Middleware that passes HEAD requests to the application as GET.

    The server omits the body, because it still sees HEAD. The OpenAPI document contains only GET.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET"}
        try:
            await self._app(get_scope, receive, send)
        finally:
            scope["route"] = get_scope.get("route")  # the metrics of requests are by route
