"""Support HEAD wherever GET is supported, with the same status and headers and no body."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


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
