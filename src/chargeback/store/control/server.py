"""Connections to a PostgreSQL server that keep nobody waiting for longer than was agreed.

A server that is paused, or whose machine has no memory left, still has a kernel that takes what is sent to it: neither
keep-alives nor limits of the server's own end the wait for its answer. So the client has a limit, too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready

T = TypeVar("T")

#: A server whose machine or network is gone says nothing at all: the kernel alone would wait for a quarter of an hour.
_NETWORK: Final = {
    "tcp_user_timeout": 10_000,  # milliseconds until what was sent must have been received
    "keepalives_idle": 10,  # seconds
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
#: How often a connection that waits looks whether it still should, and how long asking to cancel may take (seconds).
_LOOK_SECONDS: Final = 0.1
_CANCEL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How long a database server may keep us waiting, in seconds.

    Attributes:
        connect: for a connection.
        lock: for a lock that another transaction holds.
        statement: for a whole statement; None for no limit.
        silence: without a word of the server while it works on a statement.
    """

    connect: int = 10
    lock: float = 30
    statement: float | None = None
    silence: float = 20

    def connect_args(self) -> dict[str, Any]:
        """Return the parameters of libpq that say so."""
        options = f"-c timezone=UTC -c lock_timeout={self.lock * 1000:.0f}"
        if self.statement is not None:
            options += f" -c statement_timeout={self.statement * 1000:.0f}"
        return {**_NETWORK, "connect_timeout": self.connect, "options": options}


#: For work that nobody watches; long enough for everything that a small database ever does.
USUAL_LIMITS: Final = ServerLimits()


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server is silent for too long, or when its work was called off in vain."""

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
        """Cancel what runs on the connection, from another thread; give the connection up if the server does not take
        notice."""
        try:
            self.cancel_safe(timeout=_CANCEL_SECONDS)
        except psycopg.Error:
            self._is_abandoned = True

    def wait(self, gen: PQGen[T], interval: float = _LOOK_SECONDS, timeout: float | None = None) -> T:
        """Do one exchange with the server, within the limits of this connection."""
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
