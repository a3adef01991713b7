"""The server of the Model Context Protocol over the tools, on standard input and output or over HTTP.

An assistant starts ``chargeback mcp`` and talks to its standard input and output; or the service responds at ``/mcp``
as Streamable HTTP without sessions, so that any process can handle any request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from fastapi import FastAPI
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ToolDescription
from pydantic_core import to_json
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from chargeback import __version__
from chargeback.access.caller import EVERYBODY
from chargeback.api.app_factory import create_app_from
from chargeback.api.authentication import authenticate_tokens, authenticated
from chargeback.api.limits import MAX_BODY_BYTES
from chargeback.api.rewriting import prefix_of
from chargeback.assistants.api_client import ApiClient, Sender, ToolError
from chargeback.assistants.tools import INSTRUCTIONS, TOOLS, Tool
from chargeback.config import Configuration
from chargeback.config.settings import McpSettings

NAME: Final = "chargeback"

#: Returns the client of the API for the sender of a request.
ClientOf = Callable[[Any], Awaitable[ApiClient]]

PATH: Final = "/mcp"


def create_server(client_of: ClientOf) -> Server[Any]:
    """Return a server whose tools send requests through ``client_of``, which gets the HTTP request, or None without
    one."""

    async def _list(
        _context: ServerRequestContext[Any, Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])

    async def _call(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            return _failed(f"There is no tool {params.name[:80]!r}; there are {', '.join(TOOLS)}.")
        try:
            answer = await tool.call(await client_of(context.request), dict(params.arguments or {}))
        except ToolError as error:
            return _failed(error.message)
        return CallToolResult(content=[_text(to_json(answer).decode())], structured_content=answer)

    return Server(
        NAME,
        version=__version__,
        title="Chargeback",
        instructions=INSTRUCTIONS,
        on_list_tools=_list,
        on_call_tool=_call,
    )


def _described(tool: Tool) -> ToolDescription:
    return ToolDescription(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        output_schema={"type": "object"},
        annotations=ToolAnnotations(
            title=tool.title, read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[_text(message)], is_error=True)


def serve_stdio(configuration: Configuration, token: str | None = None) -> None:
    """Serve until standard input ends. With an access ``token``, results have what that token may see; without one,
    everything, as with all commands that read the storage."""
    asyncio.run(_serve(configuration, token))


async def _serve(configuration: Configuration, token: str | None) -> None:
    app = create_app_from(configuration, "api", None)
    if token is None:
        sender = Sender(EVERYBODY)
    else:
        app.state.services = replace(app.state.services, authenticate=authenticate_tokens())
        sender = Sender(headers=(("authorization", f"Bearer {token}"),))
    client = ApiClient(app, sender, configuration.mcp.page_url or _page_of(configuration))

    async def _client_of(_request: object) -> ApiClient:
        return client

    server = create_server(_client_of)
    async with app.router.lifespan_context(app), stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _page_of(configuration: Configuration) -> str:
    """Return where the page is if the same configuration is served on this machine."""
    api = configuration.api
    host = "localhost" if api.host in {"0.0.0.0", "::"} else f"[{api.host}]" if ":" in api.host else api.host  # noqa: S104
    return f"http://{host}:{api.port}{api.path_prefix or ''}/ui"


class McpEndpoint:
    """Handles requests of authenticated callers. What each of them may see is decided when a tool sends a request to
    the API.

    The guard of the application has checked ``Host`` and ``Origin`` before. ``manager`` is there once the application
    has started.
    """

    manager: StreamableHTTPSessionManager | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request.

        Raises:
            Unauthenticated: the request is not authenticated.
        """
        await authenticated(Request(scope, receive))
        if self.manager is None:
            raise RuntimeError("the application was not started")
        await self.manager.handle_request(scope, receive, send)


def add_mcp(app: FastAPI, settings: McpSettings) -> None:
    """Add the endpoint for assistants at :data:`PATH` to an application that has not started yet."""

    async def _client_of(request: Request) -> ApiClient:
        client = None if request.client is None else (request.client.host, request.client.port)
        page = settings.page_url or _page_of_request(request)
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


def _page_of_request(request: Request) -> str:
    """Return the address of the page, as the sender of a request reaches the service."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{prefix_of(request.scope)}/ui"
