"""The control database of one tenant: connections, transactions and migrations, on SQLite and PostgreSQL.

SQLite is used in WAL mode with explicit ``BEGIN IMMEDIATE`` for writers: the driver's own transactions lose updates
between processes, and deferred ones fail with `database is locked` whatever time-out is set. Its readers write too, two
files beside the database; where the disk is full or read-only they read it as it lies.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import (
    Connection,
    Engine,
    Select,
    column,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    table,
    text,
    update,
)
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry
from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_when_event_set,
    wait_random_exponential,
)

from chargeback.disk import explain_denial
from chargeback.errors import SchemaError, StorageError
from chargeback.store.control import schema
from chargeback.store.control.immutable_file import ImmutableSqliteFile
from chargeback.store.control.server import USUAL_LIMITS, LimitedConnection, ServerLimits
from chargeback.store.ownership import StorageOwner

_LOCK_TIMEOUT_SECONDS = 30
# Alembic keeps what it works on in globals of the process.
_ALEMBIC = threading.Lock()
_MIGRATION_LOCK = 7_261_934_150  # any number that nobody else uses as an advisory lock of this database
#: Alembic's own record of the revision, read in one statement.
_STAMPED: Final[Select[Any]] = select(column("version_num")).select_from(table("alembic_version"))
#: Readers trust the last look at the revision for this long; writers look in every transaction.
_RECHECK_SECONDS: Final = 1.0
#: Trouble with the disk, not with the statement. A connection that met it is not used again: a file that was opened
#: while the disk was read-only stays so when the disk no longer is.
_DISK_TROUBLE: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_PLACE: Final = "the control database"
_PRIMARY_CODE: Final = 0xFF  # the rest of an extended code says more about the same


@dataclass(frozen=True, slots=True)
class ConnectRetry:
    """How many seconds to retry a database server that does not answer, and the event that ends the wait early."""

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

    Nothing is read from or written to a database that is not at this code's revision, or that is another tenant's than
    the ``owner`` (without one, that is not asked).

    ``limits`` say how long a server may keep us waiting. With ``retry`` one that does not answer is waited for,
    once, before a transaction begins. A transaction that was cut off in its middle is never repeated: whoever made it
    knows whether it may be.
    """

    def __init__(
        self,
        connection_string: str,
        retry: ConnectRetry | None = None,
        limits: ServerLimits = USUAL_LIMITS,
        owner: StorageOwner | None = None,
    ) -> None:
        self._engine = _engine(connection_string, limits)
        self._owner = owner
        self._is_known = False
        self._looked_at = 0.0
        self._writer = self._engine.execution_options(begin_mode="IMMEDIATE") if self.is_sqlite else self._engine
        self._durable_writer = self._writer.execution_options(is_durable=True)
        self._retry = None if self.is_sqlite else retry
        self._file = Path(self._engine.url.database) if self.is_sqlite and self._engine.url.database else None
        self._is_closed = False
        event.listen(self._engine, "checkin", self._close_late)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is the embedded database (one host), not a server."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection to read from, at one point in time.

        Raises:
            SchemaError: the database is not at this code's revision, or another tenant's.
            StorageError: the database cannot be used.
        """
        with _storage_errors(self._file), self._reading() as connection:
            if time.monotonic() >= self._looked_at + _RECHECK_SECONDS:
                self._check(connection)
            yield connection

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[Connection]:
        """A transaction that is committed at the end of the ``with``, or undone whole by any exception.

        A ``durable`` one is on the disk when it has been committed: what a person was told is done survives a loss of
        power. Of what runs write, the last may be lost; the next run does it again. A server decides by its own
        settings.

        Raises:
            SchemaError: the database is not at this code's revision, or another tenant's.
            StorageError: the database cannot be used.
        """
        with (
            _storage_errors(self._file),
            self._connected(self._durable_writer if durable else self._writer) as connection,
            connection.begin(),
        ):
            self._check(connection)
            yield connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection: the pooled ones now, and those that threads still use when they give them back."""
        self._is_closed = True
        self._engine.dispose()

    def _close_late(self, _driver: Any, entry: ConnectionPoolEntry) -> None:
        """Close a connection that is given back after the end: its pool may be gone, and would not close it."""
        if self._is_closed:
            entry.close()

    def upgrade(self, revision: str = "head") -> None:
        """Bring the schema to this code's version (or only up to an earlier one), and record the owner of a storage
        that has none yet; does nothing where both are done. Several processes may do so at the same time.

        Raises:
            ForeignStorage: the storage is another tenant's; it is not changed.
            SchemaError: the schema is ahead of this code, or its history is broken.
            StorageError: the database cannot be reached or written.
        """
        with _storage_errors(self._file), self._writer.connect() as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _MIGRATION_LOCK})
            try:
                if not self._revisions(connection).is_current:
                    with _ALEMBIC:
                        command.upgrade(_alembic(connection), revision)
                    if connection.execute(select(schema.tenant.c.id)).first() is None:
                        connection.execute(insert(schema.tenant).values(id=1))
                if revision == "head":
                    self._claim(connection)
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
        with _storage_errors(self._file), self._reading() as connection:
            return self._revisions(connection)

    def _connected(self, engine: Engine) -> Connection:
        """A connection in which nothing has happened yet."""
        if self._retry is None:
            return engine.connect()
        retrying = Retrying(
            retry=retry_if_exception_type(OperationalError),
            stop=stop_after_delay(self._retry.seconds) | stop_when_event_set(self._retry.stop),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            sleep=sleep_using_event(self._retry.stop),
            reraise=True,
        )
        try:
            return retrying(engine.connect)
        except OperationalError:
            self._retry = None  # it was in vain: whoever goes on without the database shall come to an end soon
            raise

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            connection = self._connected(self._engine)
        except OperationalError:
            resting = ImmutableSqliteFile.at(Path(self._engine.url.database or "")) if self.is_sqlite else None
            if resting is None:
                raise
            with resting.read() as connection:
                yield connection
            return
        with connection:
            yield connection

    def _check(self, connection: Connection) -> None:
        """Go on only if the schema is this code's and the storage our tenant's."""
        if self._is_known and connection.execute(_STAMPED).scalars().all() == [newest_revision()]:
            self._looked_at = time.monotonic()
            return
        found = self._revisions(connection)
        if not found.is_current:
            raise SchemaError(
                "the control database is not set up yet"
                if found.stamped is None
                else f"the control database is at revision {found.stamped}, this version needs {found.newest}: "
                "`chargeback db upgrade`, or the start of a worker, migrates it"
            )
        if self._owner is not None:
            self._owner.check(_recorded_owner(connection), _PLACE)
        self._is_known, self._looked_at = True, time.monotonic()

    def _claim(self, connection: Connection) -> None:
        """Record whose the storage is, unless somebody did."""
        if self._owner is None:
            return
        recorded = _recorded_owner(connection)
        self._owner.check(recorded, _PLACE)
        if recorded is None or recorded.ecosystem is None:
            values = {"tenant_id": self._owner.tenant_id, "ecosystem": self._owner.ecosystem}
            connection.execute(update(schema.tenant).values(values))

    def _revisions(self, connection: Connection) -> Revisions:
        scripts = _scripts()
        known = {script.revision for script in scripts.walk_revisions()}
        stamped = MigrationContext.configure(connection).get_current_heads()
        if len(stamped) > 1:
            raise SchemaError(f"the migration history is broken: it has {len(stamped)} heads ({', '.join(stamped)})")
        if not stamped:
            if set(inspect(connection).get_table_names()) & set(schema.metadata.tables):
                raise SchemaError(
                    "the migration history is broken: it has tables, but no recorded revision; "
                    "restore the database from a backup"
                )
            return Revisions(None, str(scripts.get_current_head()))
        if stamped[0] not in known:
            raise SchemaError(
                f"the control database is at revision {stamped[0]}, which this version does not know: "
                "it was written by a newer version of the service; upgrade this one"
            )
        return Revisions(stamped[0], str(scripts.get_current_head()))


def _recorded_owner(connection: Connection) -> StorageOwner | None:
    """Whose the storage is: as recorded, or, of one that was made before owners were, as its tags say."""
    tenant_id, ecosystem = connection.execute(select(schema.tenant.c.tenant_id, schema.tenant.c.ecosystem)).one()
    if tenant_id is not None:
        return StorageOwner(tenant_id, ecosystem)
    tagged = connection.execute(select(schema.tags.c.tenant_id).distinct().limit(2)).scalars().all()
    return StorageOwner(tagged[0], None) if len(tagged) == 1 else None


@contextmanager
def _storage_errors(file: Path | None) -> Iterator[None]:
    """Turns errors of the driver into ours; its messages may quote a connection string, so only the cause's first
    line is kept. Where the disk is the trouble, the file of SQLite is named, and who may use it. Violated constraints
    pass: callers give them a meaning."""
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        cause = str(error.orig).splitlines()[0]
        if file is not None and _is_disk_trouble(error.orig):
            cause = f"{file}: {cause}{explain_denial(file)}"
        raise StorageError(f"the control database cannot be used: {cause}") from error
    except SQLAlchemyError as error:
        raise StorageError(f"the control database cannot be used: {type(error).__name__}") from error


def _is_disk_trouble(error: BaseException | None) -> bool:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & _PRIMARY_CODE in _DISK_TROUBLE


def _engine(connection_string: str, limits: ServerLimits) -> Engine:
    url = make_url(connection_string)
    if url.get_backend_name() != "sqlite":
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args=limits.connect_args()
        )

        @event.listens_for(engine, "do_connect")
        def _connect(_dialect: Any, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> LimitedConnection:
            return LimitedConnection.open(limits, **parameters)

        return engine
    if url.database:
        with suppress(OSError):  # connecting will tell
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url.set(drivername="sqlite"), connect_args={"timeout": _LOCK_TIMEOUT_SECONDS})

    @event.listens_for(engine, "connect")
    def _prepare(dbapi: Any, _record: Any) -> None:
        dbapi.isolation_level = None
        for pragma in ("journal_mode=WAL", "foreign_keys=ON"):
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if options.get('is_durable') else 'NORMAL'}")
        connection.exec_driver_sql(f"BEGIN {options.get('begin_mode', 'DEFERRED')}")

    @event.listens_for(engine, "handle_error")
    def _give_up(context: ExceptionContext) -> None:
        if _is_disk_trouble(context.original_exception):
            context.is_disconnect = True

    return engine


@cache
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
