"""SIGTERM and Ctrl-C: everything under way ends at its next safe place, once, and not after its time."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any] | int | None

_log = logging.getLogger(__name__)

#: What stopping may take in all; the runs themselves are killed before that (seconds).
STOP_SECONDS = 8.5


class ShutdownHandler:
    """Calls ``stop`` once, in a thread of its own, as soon as a signal or anything else asks for it.

    A second signal, and every one after the end, does again what it did before :meth:`listen`.

    Attributes:
        requested: set as soon as the end is asked for, in whichever way.
        signalled: whether a signal asked for it.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.requested = threading.Event()
        self.signalled = False
        self._lock = threading.RLock()
        self._has_begun = False
        self._thread = threading.Thread(target=stop, name="stop", daemon=True)
        self._before: dict[signal.Signals, _Handler] = {}

    def listen(self) -> None:
        """From now on SIGTERM and SIGINT ask for the end. Only for the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """A signal handler."""
        if not self.requested.is_set():
            _log.info("stopping")
        self.signalled = True
        self.request()

    def request(self) -> None:
        """Ask for the end; returns at once."""
        # Whoever finds the end asked for may join the thread at once, so it has been started by then. The lock is
        # reentrant because a signal handler interrupts the thread that may be in here.
        with self._lock:
            if self._has_begun:
                return
            self._has_begun = True
            self._thread.start()
            self.requested.set()
        self._restore_handlers()

    def finish(self) -> None:
        """Ask for the end, and wait for it, but not for ever."""
        self.request()
        self._thread.join(STOP_SECONDS)
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)
