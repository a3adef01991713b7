"""The control database of one tenant: connections, transactions and migrations, on SQLite and PostgreSQL.

SQLite is used in WAL mode with explicit ``BEGIN IMMEDIATE`` for writers: the driver's own transactions lose updates
between processes, and deferred ones fail with `database is locked` under any timeout.

Readers of a file in WAL mode create two files next to it, which a full or read-only disk does not allow. If no process
has the file open, it is complete: it can then be read alone, without locks, as long as no process writes meanwhile.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Select,
    column,
    create_engine,
    event,
    func,
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
from sqlalchemy.pool import NullPool, QueuePool
from sqlalchemy.util import LRUCache
from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_when_event_set,
    wait_random_exponential,
)

from chargeback.config.storage import apart_from_schema, options_of
from chargeback.disk import explain_denial, part_of_open_files
from chargeback.errors import SchemaError, StorageError
from chargeback.store.clocks import ClockReading, read_clock
from chargeback.store.control import schema
from chargeback.store.control.server import USUAL_LIMITS, ConnectionPool, ServerLimits, SharedPools
from chargeback.store.ownership import StorageOwner

_LOCK_TIMEOUT_SECONDS = 30
# Alembic keeps its context in globals of the process.
_ALEMBIC = threading.Lock()
_MIGRATION_LOCK = 7_261_934_150  # an arbitrary number that no other advisory lock of this database uses
#: The connections of a pool that are kept open, and the most that are open at once.
_KEPT_CONNECTIONS: Final = 5
_MOST_CONNECTIONS: Final = 15
_MOST_SHARED_CONNECTIONS: Final = 40
_SCHEMA_KEY: Final = "chargeback.schema"
#: The scripts of the migrations: their names begin with their revisions, which are numbers of four digits.
_SCRIPTS: Final = Path(__file__).parent / "migrations" / "versions"
#: Alembic's record of the revision, and what reads it in one statement.
_RECORD: Final = "alembic_version"
_STAMPED: Final[Select[Any]] = select(column("version_num")).select_from(table(_RECORD))
#: Readers check the revision again after this time; writers check it in every transaction.
_RECHECK_SECONDS: Final = 1.0
#: Errors of the disk, not of the statement. The connection is not used again: a file that was opened while the disk was
#: read-only remains read-only when the disk is writable again.
_DISK_TROUBLE: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_PRIMARY_CODE: Final = 0xFF  # the other bits of an extended code give details
_PLACE: Final = "the control database"
#: The most SQLite files that remain open while nobody uses them; fewer if the process may not open sixteen times as
#: many files: a connection opens three, and a pool keeps several.
_MOST_IDLE_FILES: Final = 200
_FILES_OF_POOL: Final = 16
#: The compiled statements of all SQLite files, the ones used last: more than this code has.
_SQLITE_STATEMENTS: Final[LRUCache[Any, Any]] = LRUCache(2000)


@dataclass(frozen=True, slots=True)
class ConnectRetry:
    """How many seconds to retry a database server that does not respond, and the event that ends the wait early."""

    seconds: float
    stop: threading.Event


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revision of a database (None: it was never set up), and the newest that this code knows."""

    stamped: str | None
    newest: str

    @property
    def is_current(self) -> bool:
        """Return whether the schema is exactly this code's."""
        return self.stamped == self.newest


class ControlDatabase:
    """Connections to one tenant's control database. Safe for use by several threads.

    A database that is not at this code's revision, or belongs to a tenant other than ``owner``, is neither read nor
    written. Without ``owner``, the tenant is not checked.

    On a server, the tables of a tenant may be in a schema that the connection string chooses
    (:func:`~chargeback.config.storage.in_schema`). All tenants of one database then share its connections.

    ``limits`` are the timeouts of a server. With ``retry``, connecting to a server that does not respond is retried,
    once, before a transaction begins. An interrupted transaction is never repeated: only its caller knows whether it
    may be.
    """

    def __init__(
        self,
        connection_string: str,
        retry: ConnectRetry | None = None,
        limits: ServerLimits = USUAL_LIMITS,
        owner: StorageOwner | None = None,
    ) -> None:
        url, self._schema = apart_from_schema(make_url(connection_string))
        self._pool = ConnectionPool(_engine(url, limits)) if self._schema is None else _SHARED.join(url, limits)
        self._engine = self._pool.engine
        self._owner = owner
        self._is_known = False
        self._looked_at = 0.0
        self._writer = self._engine.execution_options(begin_mode="IMMEDIATE") if self.is_sqlite else self._engine
        self._durable_writer = self._writer.execution_options(is_durable=True)
        self._retry = None if self.is_sqlite else retry
        self._file = Path(self._engine.url.database) if self.is_sqlite and self._engine.url.database else None
        self._is_closed = False

    @property
    def owner(self) -> StorageOwner | None:
        """Return the tenant that the storage may belong to; None for any tenant."""
        return self._owner

    @property
    def is_sqlite(self) -> bool:
        """Return whether this is the embedded database (one host), not a server."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection that reads the database as it is at one point in time.

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
        """Open a transaction that is committed at the end of the ``with``, or rolled back by any exception.

        A ``durable`` transaction is on the disk once it is committed, so that a confirmed change of a person survives a
        power failure. Without it, a power failure may undo the last writes of a run; the next run repeats them. A
        server uses its own settings.

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
        """Close every connection that no other tenant shares: the pooled ones now, and those that threads still use
        when they give them back."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._schema is None:
            self._pool.leave()
        else:
            _SHARED.leave(self._pool)

    def upgrade(self, revision: str = "head") -> None:
        """Migrate the schema to this code's version (or to an earlier one), and record the owner of a storage that has
        none yet. Do nothing if both are done. Several processes may call this at the same time.

        Raises:
            ForeignStorage: the storage is another tenant's; it is not changed.
            SchemaError: the schema is ahead of this code, or its history is broken.
            StorageError: the database cannot be reached or written.
        """
        lock = {"key": _MIGRATION_LOCK + zlib.crc32((self._schema or "").encode())}
        with _storage_errors(self._file), self._used(self._writer.connect()) as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_lock(:key)"), lock)
            try:
                self._create_schema(connection)
                if not self._revisions(connection).is_current:
                    _migrate(connection, revision)
                    is_new = connection.execute(select(schema.tenant.c.id)).first() is None
                    if is_new:
                        connection.execute(insert(schema.tenant).values(id=1))
                    if is_new and revision == "head":
                        connection.execute(update(schema.tenant).values(has_catalogue=True))
                if revision == "head":
                    self._claim(connection)
                connection.commit()
            finally:
                if not self.is_sqlite:
                    connection.rollback()
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), lock)

    def clock(self) -> ClockReading | None:
        """Return the server's time; None for the embedded database, whose clock is this machine's.

        Raises:
            StorageError: the database cannot be reached.
        """
        if self.is_sqlite:
            return None
        now = select(func.clock_timestamp())
        with _storage_errors(self._file), self._reading() as connection:
            return read_clock(lambda: connection.execute(now).scalar_one())

    def create_schema(self) -> None:
        """Create the schema that the connection string chooses, if there is none yet, and nothing in it.

        Raises:
            StorageError: the database cannot be reached or written.
        """
        with _storage_errors(self._file), self._connected(self._engine) as connection, connection.begin():
            self._create_schema(connection)

    def is_current(self) -> bool:
        """Return whether the schema is exactly this code's.

        Raises:
            SchemaError: the schema is ahead of this code, or its history is broken.
        """
        return self.revisions().is_current

    def revisions(self) -> Revisions:
        """Return the revision of the schema, and this code's.

        Raises:
            SchemaError: the schema is ahead of this code, or its history is broken.
        """
        with _storage_errors(self._file), self._reading() as connection:
            return self._revisions(connection)

    def _create_schema(self, connection: Connection) -> None:
        if self._schema is None:
            return
        # `IF NOT EXISTS` alone needs the right to create a schema, even if the schema exists.
        there = text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
        if connection.execute(there, {"name": self._schema}).first() is None:
            connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'))

    def _used(self, connection: Connection) -> Connection:
        """Return the connection with this tenant's schema selected: a pooled one may come from another tenant."""
        if self._schema is not None and connection.info.get(_SCHEMA_KEY) != self._schema:
            try:
                connection.execute(text(f'SET search_path TO "{self._schema}"'))
                connection.commit()
            except BaseException:
                connection.close()
                raise
            connection.info[_SCHEMA_KEY] = self._schema
        return connection

    def _connected(self, engine: Engine) -> Connection:
        """Open a connection without a transaction."""
        return self._used(self._connected_to_server(engine))

    def _connected_to_server(self, engine: Engine) -> Connection:
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
            self._retry = None  # it failed: a caller that continues without the database must not wait again
            raise

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            connection = self._connected(self._engine)
        except OperationalError:
            unchanging = ImmutableSqliteFile.at(Path(self._engine.url.database or "")) if self.is_sqlite else None
            if unchanging is None:
                raise
            with unchanging.read() as connection:
                yield connection
            return
        with connection:
            yield connection

    def _check(self, connection: Connection) -> None:
        """Check that the schema is this code's and that the storage belongs to this tenant."""
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
        """Record the owner of the storage, unless one is recorded."""
        if self._owner is None:
            return
        recorded = _recorded_owner(connection)
        self._owner.check(recorded, _PLACE)
        if recorded is None or recorded.ecosystem is None:
            values = {"tenant_id": self._owner.tenant_id, "ecosystem": self._owner.ecosystem}
            connection.execute(update(schema.tenant).values(values))

    def _revisions(self, connection: Connection) -> Revisions:
        has_record = inspect(connection).has_table(_RECORD)
        stamped = connection.execute(_STAMPED).scalars().all() if has_record else []
        if len(stamped) > 1:
            raise SchemaError(f"the migration history is broken: it has {len(stamped)} heads ({', '.join(stamped)})")
        if not stamped:
            if set(inspect(connection).get_table_names()) & set(schema.metadata.tables):
                raise SchemaError(
                    "the migration history is broken: it has tables, but no recorded revision; "
                    "restore the database from a backup"
                )
            return Revisions(None, newest_revision())
        if stamped[0] not in _known_revisions():
            raise SchemaError(
                f"the control database is at revision {stamped[0]}, which this version does not know: "
                "it was written by a newer version of the service; upgrade this one"
            )
        return Revisions(stamped[0], newest_revision())


def _recorded_owner(connection: Connection) -> StorageOwner | None:
    """Return the owner of the storage: as recorded or, in a storage older than this record, as its tags say."""
    tenant_id, ecosystem = connection.execute(select(schema.tenant.c.tenant_id, schema.tenant.c.ecosystem)).one()
    if tenant_id is not None:
        return StorageOwner(tenant_id, ecosystem)
    tagged = connection.execute(select(schema.tags.c.tenant_id).distinct().limit(2)).scalars().all()
    return StorageOwner(tagged[0], None) if len(tagged) == 1 else None


@contextmanager
def _storage_errors(file: Path | None) -> Iterator[None]:
    """Convert errors of the driver to StorageError. Messages may quote a connection string, so only the first line of
    the cause is kept. Errors of the disk name the SQLite file and its permissions. Violated constraints are raised
    unchanged: callers handle them."""
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


def _engine(url: URL, limits: ServerLimits, most_connections: int = _MOST_CONNECTIONS) -> Engine:
    if url.get_backend_name() != "sqlite":
        engine = create_engine(
            url.set(drivername="postgresql+psycopg").difference_update_query(["options"]),
            pool_pre_ping=True,
            max_overflow=most_connections - _KEPT_CONNECTIONS,
            pool_size=_KEPT_CONNECTIONS,
            connect_args=limits.connect_args(options_of(url)),
        )

        # The driver is loaded only if there is a server.
        from chargeback.store.control.server_connection import LimitedConnection

        @event.listens_for(engine, "do_connect")
        def _connect(_dialect: Any, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> LimitedConnection:
            return LimitedConnection.open(limits, **parameters)

        return engine
    if url.database:
        with suppress(OSError):  # connecting will report it
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    return _sqlite_engine(url.set(drivername="sqlite"))


@cache
def _sqlite() -> Engine:
    """Return the engine whose dialect and compiled statements the engines of all SQLite files share: compiling them
    again for each file would take an eighth of a run without new data, and memory for each tenant."""
    engine = create_engine("sqlite://")
    engine.connect().close()  # this completes the dialect

    # Such listeners belong to the dialect, whichever engine they are given for.
    @event.listens_for(engine, "handle_error")
    def _give_up(context: ExceptionContext) -> None:
        if _is_disk_trouble(context.original_exception):
            context.is_disconnect = True

    return engine


class _OpenFiles:
    """The engines of SQLite files that may have idle connections, the one used last at the end. Those of the files used
    longest ago are closed, so that the number of open files does not grow with the number of tenants."""

    def __init__(self) -> None:
        self.most = part_of_open_files(_FILES_OF_POOL, least=1, most=_MOST_IDLE_FILES)
        self._lock = threading.Lock()
        self._engines: OrderedDict[Engine, None] = OrderedDict()

    def used(self, engine: Engine) -> None:
        """Note that a connection to a file is given back."""
        with self._lock:
            self._engines[engine] = None
            self._engines.move_to_end(engine)
            beyond = [self._engines.popitem(last=False)[0] for _ in range(len(self._engines) - self.most)]
        for oldest in beyond:
            # One that is in use is noted again when it is given back.
            if isinstance(oldest.pool, QueuePool) and not oldest.pool.checkedout():
                oldest.dispose()


_OPEN_FILES: Final = _OpenFiles()


def _sqlite_engine(url: URL) -> Engine:
    """Return the engine of one file."""
    dialect = _sqlite().dialect
    given, named = dialect.create_connect_args(url)
    connect = partial(dialect.connect, *given, **{**named, "timeout": _LOCK_TIMEOUT_SECONDS})
    engine = Engine(dialect.get_dialect_pool_class(url)(connect, dialect=dialect), dialect, url)
    engine.update_execution_options(compiled_cache=_SQLITE_STATEMENTS)

    @event.listens_for(engine, "connect")
    def _prepare(dbapi: Any, _record: Any) -> None:
        dbapi.isolation_level = None
        for pragma in ("journal_mode=WAL", "foreign_keys=ON"):
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if "begin_mode" in options:  # readers commit nothing
            connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if options.get('is_durable') else 'NORMAL'}")
        connection.exec_driver_sql(f"BEGIN {options.get('begin_mode', 'DEFERRED')}")

    @event.listens_for(engine, "checkin")
    def _given_back(_dbapi: Any, _record: Any) -> None:
        _OPEN_FILES.used(engine)

    return engine


_SHARED: Final = SharedPools(partial(_engine, most_connections=_MOST_SHARED_CONNECTIONS))


@dataclass(frozen=True, slots=True)
class ImmutableSqliteFile:
    """A SQLite file without pending changes, as it was when it was inspected."""

    path: Path
    changed_at: int
    size: int

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """Return the file; return None if it is missing, or if its write-ahead log has changes that it lacks."""
        log = path.with_name(path.name + "-wal")
        try:
            if log.exists() and log.stat().st_size:
                return None
            found = path.stat()
        except OSError:
            return None
        return cls(path, found.st_mtime_ns, found.st_size)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection that only reads and uses no locks.

        Raises:
            StorageError: another process wrote meanwhile, so the results are invalid.
        """
        engine = create_engine("sqlite://", creator=self._open, poolclass=NullPool)
        with engine.connect() as connection:
            yield connection
        if ImmutableSqliteFile.at(self.path) != self:
            raise StorageError("the control database cannot be used: it was changed while it was read without locks")

    def _open(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?immutable=1"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)


@cache
def newest_revision() -> str:
    """Return the revision of this code's schema."""
    return max(_known_revisions())


@cache
def _known_revisions() -> frozenset[str]:
    """Return the revisions that this code can migrate."""
    return frozenset(script.name.partition("_")[0] for script in _SCRIPTS.glob("[0-9]*.py"))


def _migrate(connection: Connection, revision: str) -> None:
    """Migrate the schema to a revision.

    Raises:
        SchemaError: it cannot be migrated.
    """
    # Alembic is imported only here: that is a twentieth of a start, and most starts migrate nothing.
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", "chargeback.store.control:migrations")
    config.attributes["connection"] = connection
    try:
        with _ALEMBIC:
            command.upgrade(config, revision)
    except CommandError as error:
        raise SchemaError(f"the control database cannot be migrated: {error}") from error
