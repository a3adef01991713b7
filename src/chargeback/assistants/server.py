"""The server of the Model Context Protocol over the tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
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

from chargeback import __version__
from chargeback.assistants.api_client import ApiClient, ToolError
from chargeback.assistants.tools import INSTRUCTIONS, TOOLS, Tool

NAME: Final = "chargeback"

#: Returns the client of the API for the sender of a request.
ClientOf = Callable[[Any], Awaitable[ApiClient]]


def create_server(client_of: ClientOf) -> Server[Any]:
    """Return a server whose tools ask the API through ``client_of``, which is given the HTTP request, or None without
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
