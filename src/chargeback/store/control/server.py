"""The time limits of a PostgreSQL server, and pools of connections that tenants share.

Tenants whose tables are in schemas of one database share a pool: the number of connections follows the work, not the
number of tenants.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import URL, Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

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
