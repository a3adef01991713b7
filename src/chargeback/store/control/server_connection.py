"""Connections to a PostgreSQL server with time limits on every wait.

If a server process is suspended, or its machine has no memory left, the kernel still accepts data: neither keep-alives
nor the server's own limits end the wait for a response. So the client has a limit, too. Only this module loads the
driver, so that processes without a server start without it.
"""

from __future__ import annotations

import time
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready

from chargeback.store.control.server import ServerLimits

T = TypeVar("T")

#: How often a waiting connection checks whether it was cancelled, and the time limit of a request to cancel (seconds).
_LOOK_SECONDS: Final = 0.1
_CANCEL_SECONDS: Final = 1.0


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server is silent for too long, or does not react to a cancellation."""

    silence: float | None = None
    _is_abandoned = False

    @classmethod
    def open(cls, limits: ServerLimits, **parameters: Any) -> Self:
        """Connect.

        Raises:
            psycopg.OperationalError: the server cannot be reached in time.
        """
        connection = cls.connect(**parameters)
        connection.silence = limits.silence
        return connection

    def interrupt(self) -> None:
        """Cancel the connection's statement, from another thread; abandon the connection if the server does not
        react."""
        try:
            self.cancel_safe(timeout=_CANCEL_SECONDS)
        except psycopg.Error:
            self._is_abandoned = True

    def wait(self, gen: PQGen[T], interval: float = _LOOK_SECONDS, timeout: float | None = None) -> T:
        """Wait for one exchange with the server, within the limits of this connection."""
        limited = self._limited(gen)
        return super().wait(limited, interval) if timeout is None else super().wait(limited, interval, timeout)

    def _limited(self, gen: PQGen[T]) -> PQGen[T]:
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready != Ready.NONE:
                    heard = time.monotonic()
                elif self._is_abandoned:
                    self._give_up(gen, "the database operation was cancelled")
                elif self.silence is not None and time.monotonic() - heard >= self.silence:
                    self._give_up(gen, f"the database server has not responded for {self.silence:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            value: T = end.value
            return value

    def _give_up(self, gen: PQGen[Any], why: str) -> None:
        gen.close()
        self.close()
        raise psycopg.OperationalError(why)
