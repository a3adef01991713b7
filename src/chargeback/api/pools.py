"""Threads for blocking work, separate for each tenant, so that a storage that hangs blocks only its own tenant."""

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
    """A thread pool that counts the work waiting for a thread."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, name)
        self._count_lock = threading.Lock()
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Return how much work waits."""
        return self._waiting

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit work to the next free thread."""

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
    """The threads of one tenant.

    Attributes:
        questions: for queries of the facts.
        control: for the control database.
        streams: for the next piece of a stream.
        watch: for the queries of readiness, metrics and the list of tenants.
        cancelling: for interrupting the work of the others.
    """

    def __init__(self, name: str) -> None:
        self.questions = CountedPool(_MAX_CONCURRENT_QUERIES, f"question {name}")
        self.control = CountedPool(_MAX_CONTROL_THREADS, f"control {name}")
        self.streams = CountedPool(_MAX_STREAM_THREADS, f"stream {name}")
        self.watch = CountedPool(1, f"watch {name}")
        self.cancelling = CountedPool(1, f"cancelling {name}")

    def close(self) -> None:
        """Stop accepting work, and cancel what waits."""
        for pool in (self.questions, self.control, self.streams, self.watch, self.cancelling):
            pool.shutdown(wait=False, cancel_futures=True)
