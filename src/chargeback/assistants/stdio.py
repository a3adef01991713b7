"""MCP over standard input and output: an assistant starts the process and talks to it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from mcp.server.stdio import stdio_server

from chargeback.access.caller import EVERYBODY
from chargeback.api.app_factory import create_app_from
from chargeback.api.authentication import authenticate_tokens
from chargeback.assistants.api_client import ApiClient, Sender
from chargeback.assistants.server import create_server
from chargeback.config import Configuration


def serve_stdio(configuration: Configuration, token: str | None = None) -> None:
    """Answer until standard input ends. With an access ``token`` the answers have what that token may see; without
    one everything, as all commands that read the storage."""
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
