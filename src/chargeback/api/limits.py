"""The limits of a request: time, size, and cancellation when the client disconnects.

A request has ``limit`` seconds until the first byte of its response; after that the response is 504, its queries are
cancelled, and nothing that it would have changed is committed. A commit that has begun is awaited. Sending the response
may take as long as the client keeps accepting it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chargeback.api.problems import error_response, timed_out, too_large, unexpected_error
from chargeback.errors import ChargebackError
from chargeback.store.queries.engine import CancellationToken

#: The key of the request's :class:`CancellationToken` in the scope.
CANCELLATION = "chargeback.cancellation"

#: Enough for about fifty thousand tags.
MAX_BODY_BYTES = 8 * 2**20

# Served from memory: no thread, no limit, no queue.
_UNLIMITED_PATHS = frozenset({"/health"})


class _BodyTooLarge(Exception):
    pass


class _ClientDisconnected(Exception):
    pass


class _Stalled(Exception):
    pass


@dataclass
class _Exchange:
    """One request and its response: what was read, and how much was sent."""

    receive: Receive
    send: Send
    limit: float
    body: bytes = b""
    delivered: bool = False
    started: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def read_body(self) -> None:
        """Read the whole body."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise _ClientDisconnected
            part = message.get("body", b"")
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise _BodyTooLarge
            parts.append(part)
            if not message.get("more_body", False):
                self.body = b"".join(parts)
                return

    async def replay(self) -> Message:
        """Pass the body to the application, then wait until the client disconnects."""
        if not self.delivered:
            self.delivered = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def forward(self, message: Message) -> None:
        """Send a part of the response; a client that accepts nothing within the limit has stalled."""
        self.started = True
        try:
            async with asyncio.timeout(self.limit):
                await self.send(message)
        except TimeoutError:
            raise _Stalled from None

    async def wait_for_disconnect(self) -> None:
        """Wait until the client disconnects."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.gone.set()


class RequestLimits:
    """Middleware that gives each request a :class:`CancellationToken` and enforces its limits."""

    def __init__(self, app: ASGIApp, limit: float) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] in _UNLIMITED_PATHS:
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._limit
        exchange = _Exchange(receive, send, self._limit)
        try:
            async with asyncio.timeout_at(deadline):
                await exchange.read_body()
        except TimeoutError:
            await timed_out(self._limit)(scope, receive, send)
            return
        except _BodyTooLarge:
            await too_large(MAX_BODY_BYTES)(scope, receive, send)
            return
        except _ClientDisconnected:
            return
        if asyncio.get_running_loop().time() >= deadline:
            await timed_out(self._limit)(scope, exchange.receive, exchange.send)
            return
        token = scope[CANCELLATION] = CancellationToken()
        await self._serve(scope, exchange, deadline, token)

    async def _serve(self, scope: Scope, exchange: _Exchange, deadline: float, token: CancellationToken) -> None:
        serving = asyncio.create_task(self._application(scope, exchange))
        leaving = asyncio.create_task(exchange.wait_for_disconnect())
        both = {serving, leaving}
        try:
            await asyncio.wait(both, timeout=deadline - asyncio.get_running_loop().time(), return_when=_FIRST)
            is_waiting = not serving.done() and not leaving.done()
            if is_waiting and (exchange.started or not token.expire()):
                await asyncio.wait(both, return_when=_FIRST)
            if serving.done():
                return
            serving.cancel()
            if not leaving.done() and not exchange.started:
                await timed_out(self._limit)(scope, exchange.receive, exchange.send)
        finally:
            leaving.cancel()
            if not serving.cancelling():  # shutting down cancels us: then the work is cancelled as well
                serving.cancel()

    async def _application(self, scope: Scope, exchange: _Exchange) -> None:
        """Run the application and handle its failures. A response that fails midway remains incomplete: the server then
        aborts the connection, so that an incomplete file is not mistaken for a complete one."""
        try:
            await self._app(scope, exchange.replay, exchange.forward)
        except _Stalled:
            return
        except Exception as error:  # noqa: BLE001 - the outermost edge of a request
            response = error_response(error) if isinstance(error, ChargebackError) else unexpected_error(error)
            if not exchange.started:
                await response(scope, exchange.replay, exchange.forward)


_FIRST = asyncio.FIRST_COMPLETED
