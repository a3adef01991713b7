"""Requests of a tool to the API, within this process.

The data of a tool come from the API's own routes. So a tool has the same numbers, the caller's rights and scope, the
same messages about mistakes, the same limits, and refused requests are in the same audit log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from pydantic_core import from_json
from starlette.types import ASGIApp, Message

from chargeback.access.caller import Caller
from chargeback.api.authentication import CALLER
from chargeback.api.routing import PREFIX
from chargeback.errors import ChargebackError

#: Parameters of a request; several values of a name are sent as several parameters.
Parameters = Mapping[str, object]
_NOT_SENT: Final[tuple[object, ...]] = (None, [], ())
_MAX_LENGTH: Final = 2000


class ToolError(ChargebackError):
    """A tool has no result; the message says why, for the assistant."""


@dataclass(frozen=True)
class ApiResponse:
    """The JSON of a response of the API, and its headers by their names in lower case."""

    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Sender:
    """The sender of requests: an authenticated ``caller``, or ``headers`` that identify one."""

    caller: Caller | None = None
    headers: tuple[tuple[str, str], ...] = ()
    client: tuple[str, int] | None = None


class ApiClient:
    """Sends requests with GET to an application in this process, whose lifespan has begun."""

    def __init__(self, app: ASGIApp, sender: Sender, page: str) -> None:
        self._app = app
        self._sender = sender
        self._page = page.rstrip("/")

    async def get(self, tenant: str | None, path: str, parameters: Parameters | None = None) -> ApiResponse:
        """Return the API's response to a ``path`` of a tenant, such as ``costs``, or of none.

        Raises:
            ToolError: the API refuses the request, or fails.
        """
        parts = [*([] if tenant is None else ["tenants", tenant]), *path.split("/")]
        decoded = "/".join([PREFIX, *filter(None, parts)])
        encoded = "/".join([PREFIX, *(quote(part, safe="") for part in parts if part)])
        status, headers, content = await self._send(decoded, encoded, list(_pairs(parameters or {})))
        body = from_json(content) if content else None
        if status != 200:
            raise ToolError(_problem(status, body))
        return ApiResponse(body, headers)

    def link(self, tenant: str, page: str, parameters: Parameters | None = None) -> str:
        """Return the address of a page of a tenant for people."""
        query = urlencode(list(_pairs(parameters or {})), safe=":")
        return f"{self._page}/{quote(tenant, safe='')}/{page}{f'?{query}' if query else ''}"

    async def _send(self, path: str, raw: str, query: Sequence[tuple[str, str]]) -> tuple[int, dict[str, str], bytes]:
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": raw.encode("ascii"),
            "root_path": "",
            "query_string": urlencode(query).encode("ascii"),
            "headers": [
                (b"host", b"localhost"),
                (b"accept", b"application/json"),
                *((name.encode("latin-1"), value.encode("latin-1")) for name, value in self._sender.headers),
            ],
            "client": self._sender.client,
            "server": ("localhost", None),
        }
        if self._sender.caller is not None:
            scope[CALLER] = self._sender.caller
        exchange = _Exchange()
        await self._app(scope, exchange.receive, exchange.send)
        return exchange.status, exchange.headers, b"".join(exchange.parts)


class _Exchange:
    """One request without a body, and its response."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self._sent = False
        self._waiting = asyncio.Event()

    async def receive(self) -> Message:
        """Give the request; after that nothing happens, because a tool that is cancelled cancels its requests."""
        if self._sent:
            await self._waiting.wait()
        self._sent = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Message) -> None:
        """Keep a part of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
            }
        elif message["type"] == "http.response.body":
            self.parts.append(message.get("body", b""))


def _pairs(parameters: Parameters) -> Iterable[tuple[str, str]]:
    """Yield the parameters that have a value, as texts."""
    for name, value in parameters.items():
        values = value if isinstance(value, list | tuple) else [value]
        if value not in _NOT_SENT:
            yield from ((name, _text(each)) for each in values)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(status: int, body: Any) -> str:
    """Return what a response with an error says."""
    detail = body.get("detail") if isinstance(body, dict) else None
    return str(detail or f"The service cannot answer: status {status}.")[:_MAX_LENGTH]
