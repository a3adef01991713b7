"""The control database is migrated once, whoever comes, and refuses what it does not understand."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from chargeback.errors import SchemaError, StorageError
from chargeback.store.control import schema
from chargeback.store.control.database import ControlDatabase, Patience
from tests.support.databases import PostgresServer, own_postgres_server


def test_the_migrations_make_exactly_the_tables_of_the_code(database: ControlDatabase) -> None:
    """What the revisions build is what the queries expect."""
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []


def test_a_migrated_database_is_current(connection_string: str) -> None:
    """An empty database is not current; an upgraded one is, and upgrading it again changes nothing."""
    database = ControlDatabase(connection_string)
    assert not database.is_current()
    for _ in range(2):
        database.upgrade()
        assert database.is_current()
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM tenant")).scalar() == 1
    database.close()


def test_several_processes_may_upgrade_at_the_same_time(connection_string: str) -> None:
    """API and worker start together on an empty database, and both find it migrated."""
    program = (
        "import sys; from chargeback.store.control.database import ControlDatabase; "
        "database = ControlDatabase(sys.argv[1]); database.upgrade(); assert database.is_current()"
    )
    with ThreadPoolExecutor(4) as pool:
        ends = list(
            pool.map(
                lambda _: subprocess.run(
                    [sys.executable, "-c", program, connection_string], capture_output=True, text=True, check=False
                ),
                range(4),
            )
        )
    assert [(end.returncode, end.stderr) for end in ends] == [(0, "")] * 4


def test_a_schema_ahead_of_the_code_is_a_clear_error(connection_string: str) -> None:
    """A database written by a newer version is left alone."""
    database = ControlDatabase(connection_string)
    database.upgrade()
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for attempt in (database.upgrade, database.is_current):
        with pytest.raises(SchemaError, match=r"revision 9999.*newer version of the service"):
            attempt()
    database.close()


def test_a_broken_history_is_a_clear_error(connection_string: str) -> None:
    """Tables without a recorded revision, or with two, are not touched."""
    database = ControlDatabase(connection_string)
    database.upgrade()
    with database.write() as connection:
        connection.execute(text("INSERT INTO alembic_version VALUES ('9999')"))
    with pytest.raises(SchemaError, match="2 heads"):
        database.upgrade()
    with database.write() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(SchemaError, match="no recorded revision"):
        database.upgrade()
    database.close()


def test_a_failed_transaction_leaves_nothing(database: ControlDatabase) -> None:
    """What happened in a transaction that raised has not happened."""

    def fail() -> None:
        with database.write() as connection:
            connection.execute(schema.days.insert().values(tracking_date=None))

    with pytest.raises(Exception, match=r"(?i)null"):
        fail()
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM days")).scalar() == 0


def test_an_unusable_database_is_a_storage_error(tmp_path: Path) -> None:
    """A file that is no database, a server that is not there: one sentence, without the password."""
    (tmp_path / "x.db").write_text("this is no database, it is far too long a text to be taken for an empty one")
    with pytest.raises(StorageError, match="not a database"):
        ControlDatabase(f"sqlite:///{tmp_path / 'x.db'}").upgrade()
    with pytest.raises(StorageError, match="cannot be used") as raised:
        ControlDatabase("postgresql://somebody:hunter2@127.0.0.1:1/none").upgrade()
    assert "hunter2" not in str(raised.value)


def test_several_databases_may_be_migrated_by_threads_of_one_process(tmp_path: Path) -> None:
    """An engine sets up all of its tenants at the same time."""
    databases = [ControlDatabase(f"sqlite:///{tmp_path / f'{number}.db'}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ControlDatabase.upgrade, databases))
    assert all(database.is_current() for database in databases)
    for database in databases:
        database.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that may be stopped; whoever stops it starts it again."""
    with own_postgres_server() as server:
        yield server


def test_a_server_that_is_started_again_is_waited_for(postgres: PostgresServer) -> None:
    """With patience a transaction that finds no server begins when there is one; its old connections are forgotten."""
    with ControlDatabase(postgres.address, Patience(120, threading.Event())) as database:
        database.upgrade()
        postgres.stop("fast")
        starting = threading.Timer(1, postgres.start)
        starting.start()
        with database.write() as connection:
            connection.execute(text("UPDATE tenant SET stage = 'gathering'"))
        with database.read() as connection:
            assert connection.execute(text("SELECT stage FROM tenant")).scalar() == "gathering"
        starting.join()


def test_patience_ends_with_the_process_and_is_not_had_twice(postgres: PostgresServer) -> None:
    """Whoever is asked to stop does not wait, and whoever waited in vain does not wait again."""
    stop = threading.Event()
    postgres.stop("fast")
    try:
        for patience in (None, Patience(10**6, stop), Patience(0.1, threading.Event())):
            threading.Timer(0.2, stop.set).start()
            with ControlDatabase(postgres.address, patience) as database:
                for _ in range(3):
                    with pytest.raises(StorageError, match="cannot be used"), database.read():
                        pass
    finally:
        postgres.start()


def test_the_kernel_gives_up_a_server_that_vanished(postgres: PostgresServer) -> None:
    """What is sent to a machine that is gone is an error within a request's time, not after a quarter of an hour."""
    with ControlDatabase(postgres.address) as database, database.read() as connection:
        driver = cast("psycopg.Connection", connection.connection.dbapi_connection)
        with socket.socket(fileno=os.dup(driver.fileno())) as wire:
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
            assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
