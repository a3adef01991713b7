"""uvicorn with our logging, socket, shutdown, and limits of connections.

uvicorn limits how long an idle connection is kept, but neither how long a client may take to send the first line and
the headers of a request nor how large they may be. A client that opens connections and never finishes a request could
use all file descriptors, and a header that never ends all memory.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import socket
from http import HTTPStatus
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.responses import Response
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from chargeback.api.problems import headers_too_large
from chargeback.disk import part_of_open_files
from chargeback.errors import ListenError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from chargeback.cli.shutdown import ShutdownHandler


#: How long the first line and the headers of a request may take, in seconds.
HEADER_SECONDS = 10.0

#: How large the first line and the headers of a request may be, in bytes. Trailers behind a body have the same limit.
MAX_HEADER_BYTES = 64 * 2**10

#: The bytes that are parsed at once: a queue of pipelined requests is at most as long.
_PARSED_AT_ONCE = 4096

#: How long to discard what a refused client still sends. If the connection ended at once, the kernel would discard the
#: response as well.
_DISCARD_SECONDS = 1.0

#: The maximum number of connections; fewer if the process may not open twice as many files.
_MAX_CONNECTIONS = 4096
_MIN_CONNECTIONS = 16

_log = logging.getLogger(__name__)

#: How long requests in progress may take after the service was asked to stop, in seconds.
GRACE_SECONDS = 5


def connection_limit() -> int:
    """Return the maximum number of connections: at most half of the files that the process may open."""
    return part_of_open_files(2, least=_MIN_CONNECTIONS, most=_MAX_CONNECTIONS)


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits for the time and the size of headers, and for the number of connections.

    A connection beyond the limit replaces the one that has waited longest for the rest of a request, so that complete
    requests are always served. While a pipelined request waits for the response to an earlier one, nothing more is
    parsed or read.
    """

    header_seconds = HEADER_SECONDS
    most_header_bytes = MAX_HEADER_BYTES
    most_connections = connection_limit()

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._waiting_since = 0.0
        self._header_timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0  # parsed since the last end of headers, part of a body, or end of a request
        self._is_past_headers = False
        self._has_headers = False
        self._unparsed = b""
        self._is_refused = False

    @property
    def awaits_headers(self) -> bool:
        """Return whether no request is in progress on this connection."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def awaits_client(self) -> bool:
        """Return whether the connection waits for the client: for headers, or the rest of a body."""
        return self.awaits_headers or self.cycle.more_body

    @property
    def has_pipelined(self) -> bool:
        """Return whether a request waits for the response to an earlier one."""
        return bool(self.pipeline or self._unparsed)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of a request."""
        if len(self.connections) >= self.most_connections:
            self._make_room()
        super().connection_made(transport)
        self.flow = _PipelineFlow(transport, self)
        self._waiting_since = self.loop.time()
        self._limit_headers()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request. More of the same headers, or bytes that start no request, do not extend the
        timeout."""
        if not self._is_refused:
            self._unparsed += data
            self._parse()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._has_headers = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Trailers, which follow a body, are not headers: a proxy in front may not have checked them."""
        if not self._has_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Serve the request."""
        self._stop_timer()
        self._waiting_since = self.loop.time()
        self._has_headers = self._is_past_headers = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._is_past_headers = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request; headers of the next one may follow."""
        self._is_past_headers = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or serve one that has arrived already."""
        self._waiting_since = self.loop.time()
        super().on_response_complete()
        if self._unparsed:
            self._parse()
            self.flow.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        self._stop_timer()
        self._unparsed = b""
        super().connection_lost(exc)

    def _parse(self) -> None:
        """Parse what has been received, until a request has to wait for the response to an earlier one."""
        data, self._unparsed = self._unparsed, b""
        start = 0
        while start < len(data) and not self._is_ending():
            if self.pipeline:
                self._unparsed = data[start:]
                self.flow.pause_reading()
                return
            size = min(_PARSED_AT_ONCE, self.most_header_bytes - self._header_bytes)
            if size <= 0:
                self._refuse_headers()
                return
            piece = data[start : start + size]
            self._is_past_headers = False
            super().data_received(piece)
            self._header_bytes = 0 if self._is_past_headers else self._header_bytes + len(piece)
            start += size
        if self.awaits_headers and not self._is_ending():
            self._limit_headers()

    def _is_ending(self) -> bool:
        return self._is_refused or self.transport.is_closing()

    def _refuse_headers(self) -> None:
        """Respond that headers or trailers are too large, and close. A response in progress is completed first."""
        self.logger.warning("closing a connection: more than %d bytes of headers", self.most_header_bytes)
        self._is_refused = True
        self._stop_timer()
        if not self.awaits_headers:
            if self.cycle.response_started or not self.cycle.more_body:
                self.cycle.keep_alive = False
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._send_last(headers_too_large(self.most_header_bytes))

    def _send_last(self, response: Response) -> None:
        status = HTTPStatus(response.status_code)
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode(), b"connection: close"]
        lines += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + bytes(response.body))
        self.transport.write_eof()
        self._header_timer = self.loop.call_later(_DISCARD_SECONDS, self.transport.close)

    def _limit_headers(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_seconds, self._headers_are_late)

    def _headers_are_late(self) -> None:
        self._header_timer = None
        if self.awaits_headers and not self.transport.is_closing():
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _make_room(self) -> None:
        """Close the connection that has waited longest for its client, those without a request first."""
        waiting = [each for each in self.connections if isinstance(each, LimitedProtocol) and each.awaits_client]
        if waiting:
            slowest = min(waiting, key=lambda each: (not each.awaits_headers, each._waiting_since))
            self.connections.discard(slowest)
            slowest.transport.abort()


class _PipelineFlow(FlowControl):
    """Reads nothing more from a connection while a pipelined request waits."""

    def __init__(self, transport: asyncio.Transport, protocol: LimitedProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        if not self._protocol.has_pipelined:
            super().resume_reading()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on ``host`` and ``port``, before anything else is started.

    Raises:
        ListenError: the port is in use, or the address is invalid; the message has a solution.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = "the port is in use; choose another one (api.port, or --port of the demo)"
        elif error.errno == errno.EACCES:
            advice = "ports below 1024 need privileges that this process does not have; choose a higher one"
        else:
            advice = f"{error.strerror}; api.host should be an address of this machine, or 0.0.0.0 for all"
        raise ListenError(f"cannot listen on {host}:{port}: {advice}") from None


class HttpServer(uvicorn.Server):
    """Serves an application on a socket, until the ``stopper`` is asked to stop.

    If the stop was requested before the server runs, it exits immediately.
    """

    def __init__(self, app: ASGIApp, stopper: ShutdownHandler) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=LimitedProtocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # the peer of a request is who is connected; X-Forwarded-For is ignored
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._stopper = stopper

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop everything, not only the server."""
        self._stopper.on_signal(sig, frame)
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop; called ten times a second."""
        return self._stopper.requested.is_set() or await super().on_tick(counter)

    def run_on(self, listening: socket.socket) -> None:
        """Serve on this socket until the server is asked to stop."""
        # The objects of the application live until its end. Scanning them in each garbage collection would delay
        # requests by 50 to 100 ms during large responses. There is next to no garbage between them: to look for it
        # first would be a tenth of the start.
        gc.freeze()
        gc.enable()
        host, port = listening.getsockname()[:2]
        _log.info("listening on http://%s:%s", f"[{host}]" if ":" in host else host, port)
        try:
            self.run(sockets=[listening])
        finally:
            gc.unfreeze()
