"""The schedule: one thread for each tenant, so that none waits for another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from chargeback.model.days import Clock, render_instant, utc_now

log = logging.getLogger(__name__)

#: The delay after an unexpected error, in seconds.
_AFTER_ERROR = 60.0


@dataclass(frozen=True, slots=True)
class NextTurn:
    """When to check a tenant again, in seconds, and why. ``is_news`` is False for a repetition, which is not
    logged again."""

    seconds: float
    why: str
    is_news: bool = True


class Schedule:
    """Calls ``take_turn`` for each tenant repeatedly, in a separate thread for each tenant.

    ``take_turn`` returns when to call it next, or None for never.
    """

    def __init__(self, take_turn: Callable[[str], NextTurn | None], clock: Clock = utc_now) -> None:
        self._take_turn = take_turn
        self._clock = clock
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, names: Iterable[str]) -> None:
        """Start the threads of all tenants."""
        for name in names:
            thread = threading.Thread(target=self._repeat, args=(name,), name=f"schedule {name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Start no more turns; return immediately."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Wait for turns in progress, at most this long."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _repeat(self, name: str) -> None:
        while not self._stopping.is_set():
            try:
                turn = self._take_turn(name)
            except Exception:  # the outermost edge of a thread: a tenant must not stop without a word
                log.exception("tenant %s: the scheduled run failed", name)
                turn = NextTurn(_AFTER_ERROR, "an unexpected error occurred")
            if turn is None or self._stopping.is_set():
                return
            if turn.is_news:
                at = render_instant((self._clock() + timedelta(seconds=turn.seconds)).replace(microsecond=0))
                log.info("tenant %s: next run at %s, in %.0f s: %s", name, at, turn.seconds, turn.why)
            self._stopping.wait(turn.seconds)
