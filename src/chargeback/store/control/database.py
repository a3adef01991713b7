"""The control database of one tenant: connections, transactions and migrations, on SQLite and PostgreSQL.

SQLite is used in WAL mode with explicit ``BEGIN IMMEDIATE`` for writers: the driver's own transactions lose updates
between processes, and deferred ones fail with `database is locked` whatever time-out is set. Its readers write too, two
files beside the database; where the disk is full or read-only they read it as it lies.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, insert, inspect, make_url, select, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_when_event_set,
    wait_random_exponential,
)

from chargeback.errors import SchemaError, StorageError
from chargeback.store.control import schema
from chargeback.store.control.resting import RestingFile

_LOCK_TIMEOUT_SECONDS = 30
# Alembic keeps what it works on in globals of the process.
_ALEMBIC = threading.Lock()
_MIGRATION_LOCK = 7_261_934_150  # any number that nobody else uses as an advisory lock of this database
#: A server whose machine or network is gone says nothing at all: the kernel alone would wait for a quarter of an hour.
#: These end it early enough for a request to be answered within its limit.
_SERVER_LIMITS: Final = {
    "connect_timeout": 10,  # seconds
    "tcp_user_timeout": 10_000,  # milliseconds until what was sent must have been received
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
#: Trouble with the disk, not with the statement. A connection that met it is not used again: a file that was opened
#: while the disk was read-only stays so when the disk no longer is.
_DISK_TROUBLE: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_PRIMARY_CODE: Final = 0xFF  # the rest of an extended code says more about the same


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds to wait for a database server that does not answer, and what ends the wait before."""

    seconds: float
    stop: threading.Event


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revision that a database is at (none: it was never set up), and the newest that this code knows."""

    stamped: str | None
    newest: str

    @property
    def is_current(self) -> bool:
        """Whether the schema is exactly this code's."""
        return self.stamped == self.newest


class ControlDatabase:
    """Connections to one tenant's control database. Safe for use by several threads.

    With ``patience`` a server that does not answer is waited for, once, before a transaction begins. A transaction that
    was cut off in its middle is never repeated: whoever made it knows whether it may be.
    """

    def __init__(self, connection_string: str, patience: Patience | None = None) -> None:
        self._engine = _engine(connection_string)
        self._writer = self._engine.execution_options(begin_mode="IMMEDIATE") if self.is_sqlite else self._engine
        self._patience = None if self.is_sqlite else patience

    @property
    def is_sqlite(self) -> bool:
        """Whether this is the embedded database (one host), not a server."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection to read from, at one point in time.

        Raises:
            StorageError: the database cannot be used.
        """
        with _storage_errors(), self._reading() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the ``with``, or undone whole by any exception.

        Raises:
            StorageError: the database cannot be used.
        """
        with _storage_errors(), self._connected(self._writer) as connection, connection.begin():
            yield connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every pooled connection."""
        self._engine.dispose()

    def upgrade(self, revision: str = "head") -> None:
        """Bring the schema to this code's version (or only up to an earlier one); does nothing where it already is.
        Several processes may do so at the same time.

        Raises:
            SchemaError: the schema is ahead of this code, or its history is broken.
            StorageError: the database cannot be reached or written.
        """
        with _storage_errors(), self._writer.connect() as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _MIGRATION_LOCK})
            try:
                if self._revisions(connection).is_current:
                    return
                with _ALEMBIC:
                    command.upgrade(_alembic(connection), revision)
                if connection.execute(select(schema.tenant.c.id)).first() is None:
                    connection.execute(insert(schema.tenant).values(id=1))
                connection.commit()
            except CommandError as error:
                raise SchemaError(f"the control database cannot be migrated: {error}") from error
            finally:
                if not self.is_sqlite:
                    connection.rollback()
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _MIGRATION_LOCK})

    def is_current(self) -> bool:
        """Whether the schema is exactly this code's.

        Raises:
            SchemaError: the schema is ahead of this code, or its history is broken.
        """
        return self.revisions().is_current

    def revisions(self) -> Revisions:
        """At which revision the schema is, and which is this code's.

        Raises:
            SchemaError: the schema is ahead of this code, or its history is broken.
        """
        with self.read() as connection:
            return self._revisions(connection)

    def _connected(self, engine: Engine) -> Connection:
        """A connection in which nothing has happened yet."""
        if self._patience is None:
            return engine.connect()
        retrying = Retrying(
            retry=retry_if_exception_type(OperationalError),
            stop=stop_after_delay(self._patience.seconds) | stop_when_event_set(self._patience.stop),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            sleep=sleep_using_event(self._patience.stop),
            reraise=True,
        )
        try:
            return retrying(engine.connect)
        except OperationalError:
            self._patience = None  # it was in vain: whoever goes on without the database shall come to an end soon
            raise

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            connection = self._connected(self._engine)
        except OperationalError:
            resting = RestingFile.at(Path(self._engine.url.database or "")) if self.is_sqlite else None
            if resting is None:
                raise
            with resting.read() as connection:
                yield connection
            return
        with connection:
            yield connection

    def _revisions(self, connection: Connection) -> Revisions:
        scripts = _scripts()
        known = {script.revision for script in scripts.walk_revisions()}
        stamped = MigrationContext.configure(connection).get_current_heads()
        if len(stamped) > 1:
            raise SchemaError(f"the migration history is broken: it has {len(stamped)} heads ({', '.join(stamped)})")
        if not stamped:
            if set(inspect(connection).get_table_names()) & set(schema.metadata.tables):
                raise SchemaError(
                    "the migration history is broken: there are tables of ours but no recorded revision; "
                    "restore the database from a backup"
                )
            return Revisions(None, str(scripts.get_current_head()))
        if stamped[0] not in known:
            raise SchemaError(
                f"the control database is at revision {stamped[0]}, which this version does not know: "
                "it was written by a newer version of the service; upgrade this one"
            )
        return Revisions(stamped[0], str(scripts.get_current_head()))


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Turns errors of the driver into ours; its messages may quote a connection string, so only the cause's first
    line is kept. Violated constraints pass: callers give them a meaning."""
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        raise StorageError(f"the control database cannot be used: {str(error.orig).splitlines()[0]}") from error
    except SQLAlchemyError as error:
        raise StorageError(f"the control database cannot be used: {type(error).__name__}") from error


def _engine(connection_string: str) -> Engine:
    url = make_url(connection_string)
    if url.get_backend_name() != "sqlite":
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            connect_args={**_SERVER_LIMITS, "options": "-c timezone=UTC"},
        )
    if url.database:
        with suppress(OSError):  # connecting will tell
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url.set(drivername="sqlite"), connect_args={"timeout": _LOCK_TIMEOUT_SECONDS})

    @event.listens_for(engine, "connect")
    def _prepare(dbapi: Any, _record: Any) -> None:
        dbapi.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        mode = connection.get_execution_options().get("begin_mode", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")

    @event.listens_for(engine, "handle_error")
    def _give_up(context: ExceptionContext) -> None:
        code = getattr(context.original_exception, "sqlite_errorcode", sqlite3.SQLITE_OK)
        if code & _PRIMARY_CODE in _DISK_TROUBLE:
            context.is_disconnect = True

    return engine


def newest_revision() -> str:
    """The revision that this code's schema has."""
    return str(_scripts().get_current_head())


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_alembic(None))


def _alembic(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", "chargeback.store.control:migrations")
    config.attributes["connection"] = connection
    return config
