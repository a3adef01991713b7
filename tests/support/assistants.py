"""An assistant: the client of MCP's own SDK, with both transports."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from mcp_types import Tool as ToolDescription

#: The name of a tool and its arguments.
Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Answer:
    """The result of a tool: as text, and as JSON unless the call failed."""

    text: str
    content: Any
    failed: bool


@dataclass
class Assistant:
    """Calls tools, with one connection for each list of calls; ``calls`` is their number."""

    address: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0

    @classmethod
    def over_http(cls, address: str, headers: Mapping[str, str] | None = None) -> Assistant:
        """Return an assistant that uses a service at an address."""
        return cls(address=f"{address}/mcp", headers=headers or {})

    @classmethod
    def over_stdio(cls, file: Path, environment: Mapping[str, str]) -> Assistant:
        """Return an assistant that starts ``chargeback mcp`` with a configuration."""
        command = [sys.executable, "-m", "chargeback", "mcp", "--config", str(file)]
        return cls(command=command, environment=environment)

    def tools(self) -> list[ToolDescription]:
        """Return the tools' descriptions."""

        async def _ask(session: ClientSession) -> list[ToolDescription]:
            return (await session.list_tools()).tools

        return asyncio.run(self._within(_ask))

    def answer(self, tool: str, **arguments: Any) -> Any:
        """Return the content of the result of a tool, which must succeed."""
        (found,) = self.ask([(tool, arguments)])
        assert not found.failed, found.text
        return found.content

    def ask(self, calls: Sequence[Call]) -> list[Answer]:
        """Return the results of some calls."""

        async def _ask(session: ClientSession) -> list[Answer]:
            return [await self._one(session, name, arguments) for name, arguments in calls]

        return asyncio.run(self._within(_ask))

    async def _one(self, session: ClientSession, name: str, arguments: Mapping[str, Any]) -> Answer:
        self.calls += 1
        result = await session.call_tool(name, dict(arguments))
        (said,) = result.content
        assert isinstance(said, TextContent)
        content = None if result.is_error else json.loads(said.text)
        assert content == (None if result.is_error else result.structured_content)
        return Answer(said.text, content, bool(result.is_error))

    async def _within(self, ask: Any) -> Any:
        async with AsyncExitStack() as stack:
            if self.command:
                program, *words = self.command
                server = StdioServerParameters(command=program, args=words, env=dict(self.environment))
                streams = await stack.enter_async_context(stdio_client(server))
            else:
                http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(self.headers), timeout=60))
                streams = await stack.enter_async_context(streamable_http_client(self.address, http_client=http))
            session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
            await session.initialize()
            return await ask(session)
