"""The time limits of a PostgreSQL server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

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
