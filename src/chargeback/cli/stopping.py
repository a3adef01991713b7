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
STOP_SECONDS = 9


class Stopper:
    """Calls ``stop`` once, in a thread of its own, as soon as a signal or anything else asks for it.

    A second signal, and every one after the end, does again what it did before :meth:`listen`.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.requested = threading.Event()
        self._thread = threading.Thread(target=stop, name="stop", daemon=True)
        self._before: dict[signal.Signals, _Handler] = {}

    def listen(self) -> None:
        """From now on SIGTERM and SIGINT ask for the end. Only for the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """A signal handler."""
        _log.info("stopping")
        self.request()

    def request(self) -> None:
        """Ask for the end; returns at once."""
        if self.requested.is_set():
            return
        self.requested.set()
        self._thread.start()
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def finish(self) -> None:
        """Ask for the end, and wait for it, but not for ever."""
        self.request()
        self._thread.join(STOP_SECONDS)
