"""Connections to a PostgreSQL server: time limits on every wait, and pools that tenants share.

If a server process is suspended, or its machine has no memory left, the kernel still accepts data: neither keep-alives
nor the server's own limits end the wait for a response. So the client has a limit, too.

Tenants whose tables are in schemas of one database share a pool: the number of connections follows the work, not the
number of tenants.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready
from sqlalchemy import URL, Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

T = TypeVar("T")

#: If the server's machine or network fails, nothing arrives: the kernel alone would wait for a quarter of an hour.
_NETWORK: Final = {
    "tcp_user_timeout": 10_000,  # milliseconds until sent data must be acknowledged
    "keepalives_idle": 10,  # seconds
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
#: The same for the server: a transaction of a machine that lost its power would keep its locks for hours.
_NETWORK_OF_SERVER: Final = (
    "-c tcp_user_timeout=10000 -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2"
)
#: How often a waiting connection checks whether it was cancelled, and the time limit of a request to cancel (seconds).
_LOOK_SECONDS: Final = 0.1
_CANCEL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The time limits for a database server, in seconds.

    Attributes:
        connect: to connect.
        lock: to wait for a lock that another transaction holds.
        statement: for a whole statement; None for no limit.
        silence: without any data from the server while it executes a statement.
    """

    connect: int = 10
    lock: float = 30
    statement: float | None = None
    silence: float = 20

    def connect_args(self, options_given: str = "") -> dict[str, Any]:
        """Return the limits as parameters of libpq. Options of the connection string replace those of the network."""
        options = f"{_NETWORK_OF_SERVER} {options_given} -c timezone=UTC -c lock_timeout={self.lock * 1000:.0f}"
        if self.statement is not None:
            options += f" -c statement_timeout={self.statement * 1000:.0f}"
        return {**_NETWORK, "connect_timeout": self.connect, "options": options.strip()}


#: For background work; long enough for all statements of a small database.
USUAL_LIMITS: Final = ServerLimits()


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


class ConnectionPool:
    """The engine of one or more databases. Once all have left, its connections are closed."""

    def __init__(self, engine: Engine) -> None:
        self.engine: Final = engine
        self._users = 1
        event.listen(engine, "checkin", self._close_late)

    def join(self) -> None:
        """Count one more user."""
        self._users += 1

    def leave(self) -> bool:
        """Count one user less, and return whether it was the last. After the last, close every connection: the pooled
        ones now, the ones in use when they are given back."""
        self._users -= 1
        if self._users <= 0:
            self.engine.dispose()
        return self._users <= 0

    def _close_late(self, _driver: Any, entry: ConnectionPoolEntry) -> None:
        """Close a connection that is given back after the end: its pool may be gone, and would not close it."""
        if self._users <= 0:
            entry.close()


class SharedPools:
    """The pools of a process, by server database and time limits. Safe for use by several threads."""

    def __init__(self, make: Callable[[URL, ServerLimits], Engine]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pools: dict[tuple[URL, ServerLimits], ConnectionPool] = {}

    def join(self, url: URL, limits: ServerLimits) -> ConnectionPool:
        """Return the pool of a database; its user calls :meth:`leave` in the end."""
        with self._lock:
            pool = self._pools.get((url, limits))
            if pool is None:
                pool = self._pools[url, limits] = ConnectionPool(self._make(url, limits))
            else:
                pool.join()
            return pool

    def leave(self, pool: ConnectionPool) -> None:
        """Give up the use of a pool."""
        with self._lock:
            if pool.leave():
                self._pools = {key: each for key, each in self._pools.items() if each is not pool}
