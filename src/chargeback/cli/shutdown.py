"""SIGTERM and Ctrl-C: stop everything at its next safe point, once, within a time limit."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any] | int | None

_log = logging.getLogger(__name__)

#: The time limit for stopping, in seconds; runs are killed before that.
STOP_SECONDS = 8.5


class ShutdownHandler:
    """Calls ``stop`` once, in a separate thread, on a signal or a call of :meth:`request`.

    A second signal, and every later one, has the effect that it had before :meth:`listen`.

    Attributes:
        requested: set as soon as a stop is requested.
        signalled: whether a signal requested it.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.requested = threading.Event()
        self.signalled = False
        self._lock = threading.RLock()
        self._has_begun = False
        self._thread = threading.Thread(target=stop, name="stop", daemon=True)
        self._before: dict[signal.Signals, _Handler] = {}

    def listen(self) -> None:
        """Handle SIGTERM and SIGINT from now on. Call this in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.requested.is_set():
            _log.info("stopping")
        self.signalled = True
        self.request()

    def request(self) -> None:
        """Request a stop; return immediately."""
        # A caller that sees the request may join the thread immediately, so it must be started by then. The lock is
        # reentrant because a signal handler may interrupt the thread that holds it.
        with self._lock:
            if self._has_begun:
                return
            self._has_begun = True
            self._thread.start()
            self.requested.set()
        self._restore_handlers()

    def finish(self) -> None:
        """Request a stop, and wait for it with a timeout."""
        self.request()
        self._thread.join(STOP_SECONDS)
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)
