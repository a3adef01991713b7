"""uvicorn with our logging, socket and shutdown."""

from __future__ import annotations

import errno
import gc
import logging
import socket
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from chargeback.cli.connections import LimitedProtocol
from chargeback.errors import ListenError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from chargeback.cli.shutdown import ShutdownHandler

_log = logging.getLogger(__name__)

#: How long requests in progress may take after the service was asked to stop, in seconds.
GRACE_SECONDS = 5


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
                proxy_headers=False,  # the peer of a request is who is connected, whatever X-Forwarded-For says
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
        # requests by 50 to 100 ms during large responses.
        gc.collect()
        gc.freeze()
        host, port = listening.getsockname()[:2]
        _log.info("listening on http://%s:%s", f"[{host}]" if ":" in host else host, port)
        try:
            self.run(sockets=[listening])
        finally:
            gc.unfreeze()
