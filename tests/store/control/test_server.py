"""A PostgreSQL server that hangs delays no caller beyond the configured limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import text

from chargeback.errors import StorageError
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.server import ServerLimits
from tests.support.databases import PostgresServer, own_postgres_server
from tests.support.processes import eventually

pytestmark = pytest.mark.usefixtures("postgresql")

QUICK = ServerLimits(connect=2, lock=0.3, statement=0.5, silence=1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Yield a server that tests may pause."""
    with own_postgres_server() as running:
        with closing(ControlDatabase(running.address)) as database:
            database.upgrade()
        yield running


def seconds_to_fail(database: ControlDatabase, sql: str) -> tuple[float, str]:
    """Return the number of seconds until a statement fails, and the message."""
    began = time.monotonic()
    with pytest.raises(StorageError) as caught, database.read() as connection:
        connection.execute(text(sql))
    return time.monotonic() - began, str(caught.value)


def test_a_server_that_hangs_is_given_up(server: PostgresServer) -> None:
    """A used connection, a new one, and a statement in progress fail within the limit; when the server continues, so
    does the work."""
    with closing(ControlDatabase(server.address, None, QUICK)) as database:
        with database.read() as connection:
            connection.execute(text("SELECT 1"))
        server.pause()
        try:
            for _ in range(2):
                took, why = seconds_to_fail(database, "SELECT 1")
                assert took < 20
                assert "cannot be used" in why
        finally:
            server.resume()
        with database.read() as connection:
            assert connection.execute(text("SELECT 2")).scalar() == 2


def test_silence_is_told(server: PostgresServer) -> None:
    """The client limits a statement on which the server works without a response."""
    limits = ServerLimits(silence=0.3)
    with closing(ControlDatabase(server.address, None, limits)) as database:
        _, why = seconds_to_fail(database, "SELECT pg_sleep(60)")
    assert "has not responded for 0.3 s" in why


def test_limits_of_the_server_itself(server: PostgresServer) -> None:
    """The server also limits statements and waits for locks."""
    with closing(ControlDatabase(server.address, None, ServerLimits(statement=0.3))) as database:
        assert "statement timeout" in seconds_to_fail(database, "SELECT pg_sleep(60)")[1]
    with psycopg.connect(server.address) as other, closing(ControlDatabase(server.address, None, QUICK)) as mine:
        other.execute("SELECT pg_advisory_lock(42)")
        assert "lock timeout" in seconds_to_fail(mine, "SELECT pg_advisory_lock(42)")[1]


def test_the_server_notices_that_this_machine_is_gone(server: PostgresServer) -> None:
    """The server closes an unresponsive client's connection within seconds; the connection string may override this."""
    shown = {
        "tcp_user_timeout": "10000",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "2",
    }
    given = f"{server.address}?options=-c%20tcp_keepalives_idle%3D60"
    for address, expected in ((server.address, shown), (given, shown | {"tcp_keepalives_idle": "60"})):
        with closing(ControlDatabase(address)) as database, database.read() as connection:
            assert {name: connection.execute(text(f"SHOW {name}")).scalar() for name in shown} == expected


def test_work_that_is_called_off_ends_though_the_server_hangs(server: PostgresServer) -> None:
    """The server is asked to cancel first; if it does not respond, the connection is closed."""
    ended = threading.Event()
    with closing(ControlDatabase(server.address, None, ServerLimits(silence=600))) as database:
        connections = []

        def ask() -> None:
            try:
                with database.read() as connection:
                    connections.append(connection.connection.dbapi_connection)
                    connection.execute(text("SELECT pg_sleep(600)"))
            except StorageError:
                ended.set()

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        eventually(lambda: bool(connections))
        server.pause()
        try:
            connections[0].interrupt()  # type: ignore[union-attr]
            assert ended.wait(60)
        finally:
            server.resume()
        thread.join(60)
