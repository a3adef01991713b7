"""uvicorn, with our logs, our socket and our way to stop."""

from __future__ import annotations

import errno
import gc
import logging
import socket
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from chargeback.errors import ListenError

if TYPE_CHECKING:
    from fastapi import FastAPI

_log = logging.getLogger(__name__)

#: How long requests under way may still take once the service was asked to stop, in seconds.
GRACE_SECONDS = 5


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on ``host`` and ``port``, taken before anything else is started.

    Raises:
        ListenError: something else listens there, or the address is not ours; the message says what to change.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = "something else listens there; choose another port (api.port, or --port of the demo)"
        elif error.errno == errno.EACCES:
            advice = "ports below 1024 need rights this process has not; choose a higher one"
        else:
            advice = f"{error.strerror}; api.host should be an address of this machine, or 0.0.0.0 for all"
        raise ListenError(f"cannot listen on {host}:{port}: {advice}") from None


class HttpServer(uvicorn.Server):
    """Serves an application on a socket; ``on_stop`` is called as soon as a signal asks it to end."""

    def __init__(self, app: FastAPI, on_stop: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http="httptools",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._on_stop = on_stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop what else runs, not only the serving."""
        self._on_stop()
        super().handle_exit(sig, frame)

    def run_on(self, listening: socket.socket) -> None:
        """Serve on this socket until a signal comes."""
        # What the application consists of stays to its end. Were it searched for garbage again and again, every request
        # would wait for that: 50 to 100 ms at a time beside large answers.
        gc.collect()
        gc.freeze()
        host, port = listening.getsockname()[:2]
        _log.info("listening on http://%s:%s", f"[{host}]" if ":" in host else host, port)
        try:
            self.run(sockets=[listening])
        finally:
            gc.unfreeze()
