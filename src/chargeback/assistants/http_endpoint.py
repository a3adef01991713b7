"""MCP at ``/mcp`` of the service: Streamable HTTP without sessions, so that any process can answer any request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from chargeback.api.authentication import authenticated
from chargeback.api.limits import MAX_BODY_BYTES
from chargeback.api.path_prefix import prefix_of
from chargeback.assistants.api_client import ApiClient, Sender
from chargeback.assistants.server import create_server
from chargeback.config.settings import McpSettings

PATH: Final = "/mcp"


class McpEndpoint:
    """Answers requests of callers who are known. What each of them may see is decided when a tool asks the API.

    The guard of the application has checked ``Host`` and ``Origin`` before. ``manager`` is there once the application
    has started.
    """

    manager: StreamableHTTPSessionManager | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            Unauthenticated: the request is not authenticated.
        """
        await authenticated(Request(scope, receive))
        if self.manager is None:
            raise RuntimeError("the application was not started")
        await self.manager.handle_request(scope, receive, send)


def add_mcp(app: FastAPI, settings: McpSettings) -> None:
    """Let an application that has not started yet answer assistants at :data:`PATH`."""

    async def _client_of(request: Request) -> ApiClient:
        client = None if request.client is None else (request.client.host, request.client.port)
        page = settings.page_url or _page_of(request)
        return ApiClient(app, Sender(await authenticated(request), client=client), page)

    inner = app.router.lifespan_context

    @asynccontextmanager
    async def _lifespan(application: FastAPI) -> AsyncIterator[Any]:
        # A manager runs once; an application may be started again.
        manager = StreamableHTTPSessionManager(
            create_server(_client_of), json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        endpoint.manager = manager
        async with inner(application) as state, manager.run():
            yield state

    endpoint = McpEndpoint()
    app.router.lifespan_context = _lifespan
    app.router.routes.append(Route(PATH, endpoint, methods=["POST"], include_in_schema=False))


def _page_of(request: Request) -> str:
    """Return the address of the page, as the sender of a request reaches the service."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{prefix_of(request.scope)}/ui"
