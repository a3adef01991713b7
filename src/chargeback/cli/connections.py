"""Connections that end when the client does not send its request.

uvicorn limits how long an idle connection is kept, but not how long a client may take to send the first line and the
headers of a request. A client that opens connections and never finishes a request could use all file descriptors.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: How long the first line and the headers of a request may take, in seconds.
HEADER_SECONDS = 10.0

#: The maximum number of connections; fewer if the process may not open twice as many files.
_MAX_CONNECTIONS = 4096
_MIN_CONNECTIONS = 16


def connection_limit() -> int:
    """Return the maximum number of connections: at most half of the files that the process may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MAX_CONNECTIONS if files == resource.RLIM_INFINITY else files // 2
    return max(_MIN_CONNECTIONS, min(allowed, _MAX_CONNECTIONS))


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a time limit for headers, and a limit on the number of connections.

    A connection beyond the limit replaces the one that has waited longest for the rest of a request, so that complete
    requests are always served.
    """

    header_seconds = HEADER_SECONDS
    most_connections = connection_limit()

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._waiting_since = 0.0
        self._header_timer: asyncio.TimerHandle | None = None

    @property
    def awaits_headers(self) -> bool:
        """Return whether no request is in progress on this connection."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def awaits_client(self) -> bool:
        """Return whether the connection waits for the client: for headers, or the rest of a body."""
        return self.awaits_headers or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of a request."""
        if len(self.connections) >= self.most_connections:
            self._make_room()
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._limit_headers()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request. More of the same headers, or bytes that start no request, do not extend the
        timeout."""
        super().data_received(data)
        if self.awaits_headers and not self.transport.is_closing():
            self._limit_headers()

    def on_headers_complete(self) -> None:
        """Serve the request."""
        self._stop_timer()
        self._waiting_since = self.loop.time()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._waiting_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        self._stop_timer()
        super().connection_lost(exc)

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
