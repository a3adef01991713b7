"""Pools of connections to control databases. Tenants whose tables are in schemas of one database share a pool: a server
with a thousand tenants has as many connections as there is work, not as there are tenants."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import URL, Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from chargeback.store.control.server import ServerLimits


class ConnectionPool:
    """The engine of one or more databases. Once all have left, its connections are closed."""

    def __init__(self, engine: Engine) -> None:
        self.engine: Final = engine
        self._users = 1
        event.listen(engine, "checkin", self._close_late)

    def join(self) -> None:
        """One more uses it."""
        self._users += 1

    def leave(self) -> bool:
        """One less uses it: after the last, close every connection, the pooled ones now, and those that threads still
        use when they give them back. Return whether it was the last."""
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
        """Return the pool of a database, which each user that joined leaves in the end."""
        with self._lock:
            pool = self._pools.get((url, limits))
            if pool is None:
                pool = self._pools[url, limits] = ConnectionPool(self._make(url, limits))
            else:
                pool.join()
            return pool

    def leave(self, pool: ConnectionPool) -> None:
        """One less uses a pool."""
        with self._lock:
            if pool.leave():
                self._pools = {key: each for key, each in self._pools.items() if each is not pool}
