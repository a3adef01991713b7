"""The control database is migrated once, refuses unknown schemas, and can be read from a read-only disk."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text, update
from sqlalchemy.engine.interfaces import CacheStats

from chargeback.errors import ForeignStorage, SchemaError, StorageError
from chargeback.model.days import utc_now
from chargeback.store.control import database as database_module
from chargeback.store.control import schema
from chargeback.store.control.database import ConnectRetry, ControlDatabase, ImmutableSqliteFile
from chargeback.store.ownership import StorageOwner
from tests.support.databases import PostgresServer, control_database, own_postgres_server, raw_connection


def test_the_migrations_make_exactly_the_tables_of_the_code(database: ControlDatabase) -> None:
    """The schema that the migrations build is that of the code."""
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


def test_files_share_compiled_statements_and_nothing_else(tmp_path: Path) -> None:
    """All SQLite files of a process compile a statement once, and each reads and writes its own rows."""
    of_this_test = select(schema.tenant.c.id.label("of_this_test"), schema.tenant.c.tenant_id)
    found = {}
    for name in ("one", "other"):
        with ControlDatabase(f"sqlite:///{tmp_path / name}.db", owner=StorageOwner(name, "any")) as database:
            database.upgrade()
            with database.read() as connection:
                result = connection.execute(of_this_test)
                found[name] = (result.context.cache_hit, result.one().tenant_id)
    assert found == {"one": (CacheStats.CACHE_MISS, "one"), "other": (CacheStats.CACHE_HIT, "other")}


@pytest.mark.usefixtures("process")
def test_several_processes_may_upgrade_at_the_same_time(connection_string: str) -> None:
    """If API and worker start together on an empty database, both find it migrated."""
    program = (
        "import sys; from chargeback.store.control.database import ControlDatabase; "
        "database = ControlDatabase(sys.argv[1]); database.upgrade(); assert database.is_current()"
    )
    with ThreadPoolExecutor(2) as pool:
        ends = list(
            pool.map(
                lambda _: subprocess.run(
                    [sys.executable, "-c", program, connection_string], capture_output=True, text=True, check=False
                ),
                range(2),
            )
        )
    assert [(end.returncode, end.stderr) for end in ends] == [(0, "")] * 2


def test_a_schema_ahead_of_the_code_is_a_clear_error(connection_string: str) -> None:
    """A database written by a newer version is not changed."""
    database = ControlDatabase(connection_string)
    database.upgrade()
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for attempt in (database.upgrade, database.is_current):
        with pytest.raises(SchemaError, match=r"revision 9999.*newer version of the service"):
            attempt()
    database.close()


@pytest.mark.extensive
def test_nothing_is_read_or_written_at_another_revision(connection_string: str) -> None:
    """A database that is not set up, is behind, or was upgraded while it is open is refused in each transaction."""
    with ControlDatabase(connection_string) as database:
        for revision, words in ((None, "not set up yet"), ("0001", "at revision 0001, this version needs")):
            if revision is not None:
                database.upgrade(revision)
            for transaction in (database.read, database.write):
                with pytest.raises(SchemaError, match=words), transaction():
                    pass
        database.upgrade()
        with database.write() as connection:
            connection.execute(text("UPDATE tenant SET stage = 'gathering'"))
        for change in ("UPDATE alembic_version SET version_num = '9999'", "DELETE FROM alembic_version"):
            with raw_connection(connection_string) as connection:
                connection.execute(text(change))
            with pytest.raises(SchemaError), database.write() as connection:
                connection.execute(text("UPDATE tenant SET stage = 'calculating'"))
            time.sleep(1.1)
            with pytest.raises(SchemaError), database.read():
                pass
        with raw_connection(connection_string) as connection:
            assert connection.execute(text("SELECT stage FROM tenant")).scalar() == "gathering"


def test_a_database_belongs_to_the_first_who_uses_it(connection_string: str) -> None:
    """The owner is recorded once; another tenant, or another ecosystem, can neither read nor write."""
    ours, theirs = StorageOwner("org-1", "confluent_cloud"), StorageOwner("org-2", "confluent_cloud")
    with ControlDatabase(connection_string, owner=ours) as database:
        database.upgrade()
        database.upgrade()
    for other in (theirs, StorageOwner("org-1", "self_managed_kafka")):
        with ControlDatabase(connection_string, owner=other) as database:
            for attempt in (database.upgrade, database.read().__enter__, database.write().__enter__):
                with pytest.raises(ForeignStorage) as raised:
                    attempt()
                for part in ("org-1 (confluent_cloud)", str(other), "another storage"):
                    assert part in str(raised.value)
    with ControlDatabase(connection_string, owner=ours) as database, database.read() as connection:
        assert connection.execute(text("SELECT tenant_id FROM tenant")).scalar() == "org-1"


def test_a_database_of_an_earlier_version_belongs_to_whose_tags_it_has(connection_string: str) -> None:
    """Storage from before owners were recorded belongs to the tenant of its tags."""
    with ControlDatabase(connection_string) as database:
        database.upgrade("0003")
    with raw_connection(connection_string) as connection:
        connection.execute(
            schema.tags.insert().values(
                tenant_id="org-1",
                entity_type="resource",
                entity_id="lkc-1",
                tag_key="team",
                tag_value="a",
                created_by="b",
                created_at=utc_now(),
            )
        )
    with (
        ControlDatabase(connection_string, owner=StorageOwner("org-2", "e")) as database,
        pytest.raises(ForeignStorage, match=r"belongs to tenant_id org-1, .*tenant_id org-2 \(e\)"),
    ):
        database.upgrade()
    with ControlDatabase(connection_string, owner=StorageOwner("org-1", "e")) as database:
        database.upgrade()
        with database.read() as connection:
            assert connection.execute(text("SELECT ecosystem FROM tenant")).scalar() == "e"


def test_a_broken_history_is_a_clear_error(connection_string: str) -> None:
    """Tables without a recorded revision, or with two, are not changed."""
    database = ControlDatabase(connection_string)
    database.upgrade()
    with raw_connection(connection_string) as connection:
        connection.execute(text("INSERT INTO alembic_version VALUES ('9999')"))
    with pytest.raises(SchemaError, match="2 heads"):
        database.upgrade()
    with raw_connection(connection_string) as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(SchemaError, match="no recorded revision"):
        database.upgrade()
    database.close()


def test_a_failed_transaction_leaves_nothing(database: ControlDatabase) -> None:
    """A transaction that raises changes nothing."""

    def fail() -> None:
        with database.write() as connection:
            connection.execute(schema.days.insert().values(tracking_date=None))

    with pytest.raises(Exception, match=r"(?i)null"):
        fail()
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM days")).scalar() == 0


def test_a_connection_in_use_outlives_the_end_and_is_closed_then(database: ControlDatabase) -> None:
    """A connection in use stays open when the database is closed; it is closed when it is returned, not by the garbage
    collector."""
    with database.read() as connection:
        driver = connection.connection.dbapi_connection
        database.close()
        assert connection.execute(text("SELECT 1")).scalar() == 1
    assert driver is not None
    with pytest.raises((psycopg.OperationalError, sqlite3.ProgrammingError), match="closed"):
        driver.cursor().execute("SELECT 1")
    with database.read() as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1


def test_an_unusable_database_is_a_storage_error(tmp_path: Path) -> None:
    """A file that is not a database, or a missing server, is an error in one sentence, without the password."""
    (tmp_path / "x.db").write_text("this is no database, it is far too long a text to be taken for an empty one")
    with pytest.raises(StorageError, match="not a database"):
        ControlDatabase(f"sqlite:///{tmp_path / 'x.db'}").upgrade()
    with pytest.raises(StorageError, match="cannot be used") as raised:
        ControlDatabase("postgresql://somebody:hunter2@127.0.0.1:1/none").upgrade()
    assert "hunter2" not in str(raised.value)


@pytest.mark.extensive
def test_several_databases_may_be_migrated_by_threads_of_one_process(tmp_path: Path) -> None:
    """An engine migrates all of its tenants at the same time."""
    databases = [ControlDatabase(f"sqlite:///{tmp_path / f'{number}.db'}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ControlDatabase.upgrade, databases))
    assert all(database.is_current() for database in databases)
    for database in databases:
        database.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server that tests may stop, and must then start again."""
    with own_postgres_server() as server:
        yield server


@pytest.mark.usefixtures("process")
def test_a_server_that_is_started_again_is_waited_for(postgres: PostgresServer) -> None:
    """With a retry, a transaction waits for the server, and old connections are dropped."""
    with ControlDatabase(postgres.address, ConnectRetry(120, threading.Event())) as database:
        database.upgrade()
        postgres.stop("fast")
        starting = threading.Timer(1, postgres.start)
        starting.start()
        with database.write() as connection:
            connection.execute(text("UPDATE tenant SET stage = 'gathering'"))
        with database.read() as connection:
            assert connection.execute(text("SELECT stage FROM tenant")).scalar() == "gathering"
        starting.join()


@pytest.mark.usefixtures("process")
def test_patience_ends_with_the_process_and_is_not_had_twice(postgres: PostgresServer) -> None:
    """A process that is stopping does not wait, and one that has waited in vain does not wait again."""
    stop = threading.Event()
    postgres.stop("fast")
    try:
        for retry in (None, ConnectRetry(10**6, stop), ConnectRetry(0.1, threading.Event())):
            threading.Timer(0.2, stop.set).start()
            with ControlDatabase(postgres.address, retry) as database:
                for _ in range(3):
                    with pytest.raises(StorageError, match="cannot be used"), database.read():
                        pass
    finally:
        postgres.start()


@pytest.mark.usefixtures("process")
def test_the_kernel_gives_up_a_server_that_vanished(postgres: PostgresServer) -> None:
    """Data sent to a vanished machine is an error within the time of a request, not after a quarter of an hour."""
    with ControlDatabase(postgres.address) as database:
        database.upgrade()
        with database.read() as connection:
            driver = cast("psycopg.Connection", connection.connection.dbapi_connection)
            with socket.socket(fileno=os.dup(driver.fileno())) as wire:
                assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
                assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_files_used_longest_ago_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tenants a process has, only some of their files are open: those used last, and those in use."""
    monkeypatch.setattr(database_module._OPEN_FILES, "most", 2)
    names = ["a", "b", "c", "d"]
    with ExitStack() as stack:
        databases = {name: stack.enter_context(ControlDatabase(f"sqlite:///{tmp_path / name}.db")) for name in names}
        for each in databases.values():
            each.upgrade()
        assert _open_below(tmp_path) == {"c", "d"}
        with databases["a"].read() as connection:
            for name in ("b", "c", "d", "c"):
                with databases[name].write() as writing:
                    writing.execute(update(schema.tenant).values(gather_failures=0))
            assert connection.execute(select(schema.tenant.c.id)).scalar() == 1
            assert _open_below(tmp_path) == {"a", "c", "d"}
        assert _open_below(tmp_path) == {"a", "c"}
    assert _open_below(tmp_path) == set()


def _open_below(folder: Path) -> set[str]:
    opened = [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return {path.name.partition(".")[0] for path in opened if path.parent == folder}


def test_a_durable_transaction_waits_for_the_disk(tmp_path: Path) -> None:
    """A durable transaction is synced to the disk; one that a run can repeat is not."""
    with ControlDatabase(f"sqlite:///{tmp_path / 'x.db'}") as database:
        database.upgrade()
        for durable, level in ((True, 2), (False, 1), (True, 2)):
            with database.write(durable=durable) as connection:
                assert connection.execute(text("PRAGMA synchronous")).scalar() == level


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a migrated database without open connections."""
    with control_database("sqlite", tmp_path):
        return tmp_path / "control.db"


def write(path: Path) -> ControlDatabase:
    """Change the database, and leave it open."""
    database = ControlDatabase(f"sqlite:///{path}")
    with database.write() as connection:
        connection.execute(
            insert(schema.tags).values(
                tenant_id="acme",
                entity_type="resource",
                entity_id="lkc-1",
                tag_key="team",
                tag_value="red",
                created_by="test",
                created_at=utc_now(),
                known_from=utc_now(),
            )
        )
    return database


def test_everything_is_read_and_nothing_written(path: Path) -> None:
    """Committed rows are read, and no other file is created."""
    write(path).close()
    resting = ImmutableSqliteFile.at(path)
    assert resting is not None
    with resting.read() as connection:
        assert connection.execute(select(schema.tags.c.tag_value)).scalars().all() == ["red"]
        assert list(path.parent.iterdir()) == [path]


def test_a_file_whose_log_is_ahead_is_not_at_rest(path: Path) -> None:
    """While another connection is open, the last commit may be only in the log; a missing file is not readable
    either."""
    database = write(path)
    assert ImmutableSqliteFile.at(path) is None
    database.close()
    assert ImmutableSqliteFile.at(path) is not None
    assert ImmutableSqliteFile.at(path.with_name("missing.db")) is None


def test_what_changes_while_it_is_read_does_not_count(path: Path) -> None:
    """A reader without locks raises an error if another process has written."""
    resting = ImmutableSqliteFile.at(path)
    assert resting is not None
    with pytest.raises(StorageError, match="changed while it was read"), resting.read():
        write(path).close()
