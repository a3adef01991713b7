"""Threads for blocking work, so many for each tenant: one whose storage hangs keeps its own threads busy, no others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MAX_CONCURRENT_QUERIES = 3
_MAX_CONTROL_THREADS = 3
_MAX_STREAM_THREADS = 2


class CountedPool(ThreadPoolExecutor):
    """A pool that knows how much work waits for a thread."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, name)
        self._count_lock = threading.Lock()
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How much work waits."""
        return self._waiting

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have something done by the next thread that is free."""

        def _work() -> T:
            self._count(-1)
            return fn(*args, **kwargs)

        def _done(future: Future[T]) -> None:
            if future.cancelled():
                self._count(-1)

        self._count(+1)
        try:
            future = super().submit(_work)
        except RuntimeError:  # the pool was shut down
            self._count(-1)
            raise
        future.add_done_callback(_done)
        return future

    def _count(self, change: int) -> None:
        with self._count_lock:
            self._waiting += change


class TenantPools:
    """The threads that work for one tenant.

    Attributes:
        questions: for questions to the facts.
        control: for the control database.
        streams: for the next piece of a stream.
        watch: for what readiness, metrics and the list of tenants ask of every tenant.
        cancelling: for interrupting the work of the others.
    """

    def __init__(self, name: str) -> None:
        self.questions = CountedPool(_MAX_CONCURRENT_QUERIES, f"question {name}")
        self.control = CountedPool(_MAX_CONTROL_THREADS, f"control {name}")
        self.streams = CountedPool(_MAX_STREAM_THREADS, f"stream {name}")
        self.watch = CountedPool(1, f"watch {name}")
        self.cancelling = CountedPool(1, f"cancelling {name}")

    def close(self) -> None:
        """Take no more work, and forget what waits."""
        for pool in (self.questions, self.control, self.streams, self.watch, self.cancelling):
            pool.shutdown(wait=False, cancel_futures=True)
