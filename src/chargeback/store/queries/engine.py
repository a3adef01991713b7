"""The query engine of the process, and the cancellation of its queries.

One in-memory DuckDB serves all tenants; each query gets a cursor of its own, so that queries run at the same time and
one can be interrupted without touching another. The engine reads the files that a query names, and keeps some small
tables that were made of them.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Final, Self, TypeGuard, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from chargeback.errors import DamagedFacts, QueryTimeout, StorageError, SumTooLarge
from chargeback.model.money import from_units, total
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import DayFile, damage_named_in, table_of
from chargeback.store.facts.tables import ADDED, SCHEMAS, schema_version
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.sql_format import FINE_PLACES, literal

#: The engine's memory limit on the smallest machines, in bytes.
SMALLEST_MEMORY: Final = 256 * 2**20
#: The beginning of Arrow's message for an interrupted query.
_INTERRUPTED: Final = "INTERRUPT"
_PROC: Final = Path("/proc")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_NO_LIMIT: Final = "max"
# Of the memory that the process may use, kept tables have this part, and one of them at most so much of that.
_PART_OF_MEMORY: Final = 64
_PART_OF_ALL: Final = 16


class CancellationToken:
    """Cancels the queries of one request or use case, which run in another thread.

    An interrupt has no effect on a cursor between two statements: repeat :meth:`cancel` until that thread has ended.

    A request either times out or changes something, never both: :meth:`expire` and :meth:`begin_commit` exclude each
    other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._is_committing = False
        self._interrupts: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether the token was cancelled."""
        return self._cancelled

    def cancel(self) -> None:
        """Interrupt what runs, and prevent further queries. May block for a moment."""
        with self._lock:
            self._cancelled = True
            interrupts = list(self._interrupts)
        for interrupt in interrupts:
            interrupt()

    def expire(self) -> bool:
        """Cancel the token unless a commit has begun; return whether it is cancelled. Does not block."""
        with self._lock:
            self._cancelled = self._cancelled or not self._is_committing
            return self._cancelled

    def begin_commit(self) -> None:
        """Begin to make a change permanent. From now on, the token does not expire.

        Raises:
            QueryTimeout: the token was cancelled; the change must be rolled back.
        """
        with self._lock:
            self.check()
            self._is_committing = True

    def check(self) -> None:
        """Return if the token is not cancelled.

        Raises:
            QueryTimeout: the token was cancelled.
        """
        if self._cancelled:
            raise QueryTimeout("the query was cancelled")

    @contextmanager
    def interruptible(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Let :meth:`cancel` call ``interrupt`` for the length of the ``with``."""
        with self._lock:
            self._interrupts.append(interrupt)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)


def interruptible(token: CancellationToken, connection: Connection) -> AbstractContextManager[None]:
    """Let the token interrupt what runs on a connection to a control database, for the length of the ``with``."""
    driver: Any = connection.connection.dbapi_connection
    return token.interruptible(driver.interrupt)


class KeptTables:
    """The most recently used tables, by the immutable data that they are made of. A large one is not kept. Safe for use
    by several threads."""

    def __init__(self, most_bytes: int | None = None) -> None:
        """Limit what is kept to a number of bytes; without a limit, the memory of the machine decides."""
        self._most_bytes = most_bytes if most_bytes is not None else available_memory() // _PART_OF_MEMORY
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, made_of: Hashable, make: Callable[[], pa.Table]) -> pa.Table:
        """Return the table of something, which ``make`` makes unless it is kept."""
        table = self.find(made_of)
        if table is None:
            table = make()
            self.keep(made_of, table)
        return table

    def find(self, made_of: Hashable) -> pa.Table | None:
        """Return the table of something; None if it is not kept."""
        with self._lock:
            if made_of in self._kept:
                self._kept.move_to_end(made_of)
            return self._kept.get(made_of)

    def keep(self, made_of: Hashable, table: pa.Table) -> None:
        """Keep the table of something."""
        with self._lock:
            if made_of not in self._kept and table.nbytes <= self._most_bytes // _PART_OF_ALL:
                self._kept[made_of] = table
                self._bytes += table.nbytes
                while self._bytes > self._most_bytes:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes


class QueryEngine:
    """An in-memory DuckDB with a memory limit. Safe for use by several threads; every query takes one cursor.

    ``memory`` is in bytes. Without ``memory`` and ``threads`` the machine decides: see :func:`default_memory`, and one
    thread per processor that the process may use.

    Raises:
        OSError: temporary files cannot be created.
    """

    def __init__(self, *, memory: int | None = None, threads: int | None = None) -> None:
        self._temporary = tempfile.mkdtemp(prefix="chargeback-queries-")
        self._connection = duckdb.connect(
            config={
                "memory_limit": f"{memory or default_memory()}B",
                "threads": threads or available_processors(),
                "temp_directory": self._temporary,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
            }
        )
        # A file never changes once it is part of a table.
        self._connection.execute("SET GLOBAL parquet_metadata_cache = true")
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        self._kept = KeptTables()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def cursor(self, token: CancellationToken) -> Iterator[Cursor]:
        """Open a cursor for the length of the ``with``; ``token`` cancels what it runs."""
        token.check()
        cursor = self._connection.cursor()
        opened = Cursor(cursor, token, Path(self._temporary), self._kept)
        try:
            with token.interruptible(cursor.interrupt):
                yield opened
        finally:
            opened.close()

    def close(self) -> None:
        """Release memory and temporary files. Queries in progress fail."""
        self._connection.interrupt()
        self._connection.close()
        with suppress(OSError):
            shutil.rmtree(Path(self._temporary))


class Cursor:
    """A cursor of the engine. Values are bound by name: ``$name`` in the SQL. Data files are bound as the paths where
    they can be opened; local copies of files in object storage stay until the cursor is closed.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when a file cannot be read or
    the query needs more memory than the engine has.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, token: CancellationToken, folder: Path, kept: KeptTables
    ) -> None:
        #: The tables that the engine keeps.
        self.kept = kept
        self._cursor = cursor
        self._token = token
        self._folder = folder
        self._lent = ExitStack()
        self._in_use: list[tuple[Copies, Sequence[DayFile]]] = []
        self._numbers = count()
        #: What rows are joined with, see :func:`~chargeback.store.queries.assignments.join_assigned`.
        self.joined: dict[tuple[int, int], tuple[Any, Any]] = {}

    def check(self) -> None:
        """Return if the query was not cancelled; for work between two statements."""
        self._token.check()

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of the result; sums in two parts, see :func:`~chargeback.store.queries.sql_format.exact`, are
        Decimals."""
        with self._querying():
            result = self._cursor.execute(*self._bound(sql, parameters))
            in_parts = [index for index, column in enumerate(result.description) if column[1].id == "struct"]
            rows: list[tuple[Any, ...]] = result.fetchall()
        return [_with_decimals(row, in_parts) for row in rows] if in_parts else rows

    def run(self, sql: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run a statement for its effect."""
        with self._querying():
            self._cursor.execute(*self._bound(sql, parameters))

    def batches(self, sql: str, parameters: Mapping[str, object], *, size: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the result, ``size`` at a time, computed while they are read: memory stays constant."""
        with self._querying():
            # A relation streams; the result of execute() would be materialised first, beyond every memory limit.
            text, values = self._bound(sql, parameters)
            reader = self._cursor.sql(text, params=values).to_arrow_reader(size)
            yield from reader

    def table(self, sql: str, parameters: Mapping[str, object]) -> pa.Table:
        """Return all rows of the result, as columns."""
        with self._querying():
            text, values = self._bound(sql, parameters)
            return self._cursor.sql(text, params=values).to_arrow_table()

    @contextmanager
    def _querying(self) -> Iterator[None]:
        """Run a query, and convert its errors; remove local copies of files that turn out to be damaged."""
        self._token.check()
        try:
            with errors_of_queries():
                yield
        except DamagedFacts:
            for copies, files in self._in_use:
                copies.discard_damaged(files)
            raise

    def close(self) -> None:
        """Close the cursor, and release the copies of files that it used."""
        self._cursor.close()
        self._lent.close()

    def _bound(self, sql: str, parameters: Mapping[str, object] | None) -> tuple[str, dict[str, object]]:
        """Return the statement and its values as DuckDB takes them."""
        values = {name: self._opened(value) for name, value in (parameters or {}).items()}
        if ADDED and parameters is not None and is_of_files(parameters.get("files")):
            sql, values["files"] = self._completed(sql, cast("Sequence[DayFile]", parameters["files"]), values["files"])
        return sql, values

    def _completed(self, sql: str, files: Sequence[DayFile], paths: object) -> tuple[str, object]:
        """Return a statement that finds in all files the columns that were added to their table later, and the paths it
        reads: an empty file at the beginning has all columns."""
        table = table_of(files[0])
        if all(file.schema_version == schema_version(table) for file in files):
            return sql, paths
        template = self._folder / table / "date=1970-01-01" / "empty.parquet"
        if not template.exists():
            template.parent.mkdir(parents=True, exist_ok=True)
            schema = SCHEMAS[table]
            pq.write_table(schema.remove(schema.get_field_index("date")).empty_table(), template, store_schema=False)
        constants = [
            f"coalesce({added.name}, {literal(added.value) if isinstance(added.value, str) else added.value})"
            f" AS {added.name}"
            for added in ADDED
            if added.table == table and added.value is not None
        ]
        source = SOURCE.replace("$files,", "$files, union_by_name = true,")
        if constants:
            source = f"(SELECT * REPLACE ({', '.join(constants)}) FROM {source})"
        return sql.replace(SOURCE, source), [str(template), *cast("list[str]", paths)]

    def _opened(self, value: object) -> object:
        """Return the paths where data files can be opened; any other value as it is."""
        if not is_of_files(value):
            return value
        copies = value[0].place.copies
        if copies is None:
            return [file.path for file in value]
        with translate_file_errors(table_of(value[0])):
            paths = self._lent.enter_context(copies.lent(value, self._token.check))
        self._in_use.append((copies, value))
        return paths

    def new_name(self, name: str) -> str:
        """Return a name that no other temporary relation of this cursor has; it begins with ``name``."""
        return f"{name}_{next(self._numbers)}"

    def register(self, name: str, table: pa.Table) -> str:
        """Register a small table under ``name``, for this cursor alone; return the name."""
        self._cursor.register(name, table)
        return name

    def unregister(self, name: str) -> None:
        """Forget a registered table."""
        self._cursor.unregister(name)


def is_of_files(value: object) -> TypeGuard[Sequence[DayFile]]:
    """Return whether the value of a parameter is a list of data files."""
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], DayFile)


def _with_decimals(row: Sequence[Any], in_parts: Sequence[int]) -> tuple[Any, ...]:
    values = list(row)
    for index in in_parts:
        values[index] = decimal_of_parts(values[index])
    return tuple(values)


def decimal_of_parts(parts: Mapping[str, Any] | None) -> Decimal | None:
    """Return the sum of a DECIMAL and of its further digits; None if nothing was added up."""
    whole: Decimal | None = None if parts is None else parts["whole"]
    if parts is None or whole is None or not parts["fine"]:
        return whole
    places = -whole.as_tuple().exponent  # type: ignore[operator]
    carried, fine = divmod(parts["fine"], 10**FINE_PLACES)
    addends = [whole, from_units(carried, places)]
    return total([*addends, from_units(fine, places + FINE_PLACES)] if fine else addends)


@contextmanager
def errors_of_queries() -> Iterator[None]:
    """Convert errors of DuckDB and of its Arrow reader to ours."""
    try:
        yield
    except duckdb.InterruptException as error:
        raise QueryTimeout("the query was cancelled") from error
    except duckdb.OutOfRangeException as error:
        raise SumTooLarge from error
    except duckdb.ConversionException as error:
        if "DECIMAL" not in str(error):
            raise
        raise SumTooLarge from error  # a whole number that fits HUGEINT, but no DECIMAL
    except duckdb.OutOfMemoryException as error:
        raise StorageError("the query needs more memory than the query engine has; query fewer days") from error
    except (duckdb.IOException, duckdb.InvalidInputException) as error:  # a file is missing or not Parquet
        raise _unreadable(error) from error
    except OSError as error:
        if str(error).startswith(_INTERRUPTED):
            raise QueryTimeout("the query was cancelled") from error
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> StorageError:
    return damage_named_in(str(error)) or StorageError(f"the facts cannot be read: {error}")


def default_memory() -> int:
    """Return the engine's memory limit in bytes if none is configured: a quarter of what the process may use."""
    return max(available_memory() // 4, SMALLEST_MEMORY)


def available_memory(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """Return how many bytes of memory this process and the others in its control group may use together."""
    found = [_total_memory(proc)]
    for name in ("memory.max", "memory.limit_in_bytes"):
        found += [int(text) for text in _limits(name, "memory", proc, cgroups) if text.isdigit()]
    return min(found)


def available_processors(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """Return how many processors this process may keep busy; part of a processor counts as one."""
    found = [float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)]
    for text in _limits("cpu.max", "cpu", proc, cgroups):
        quota, _, period = text.partition(" ")
        if quota != _NO_LIMIT:
            found.append(int(quota) / int(period))
    quotas = _limits("cpu.cfs_quota_us", "cpu", proc, cgroups)
    periods = _limits("cpu.cfs_period_us", "cpu", proc, cgroups)
    found += [int(quota) / int(period) for quota, period in zip(quotas, periods, strict=False) if int(quota) > 0]
    return max(1, math.ceil(min(found)))


def _total_memory(proc: Path) -> int:
    for line in _lines(proc / "meminfo"):
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limits(name: str, controller: str, proc: Path, cgroups: Path) -> Iterator[str]:
    """Yield the contents of the files ``name`` of this process's control group and of those that contain it."""
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = cgroups / controller if controllers else cgroups
        group = root / path.lstrip("/")
        # In a container the path may be the host's, which does not exist: the container's own group is the root.
        for folder in (group, *group.parents):
            yield from _lines(folder / name)[:1]
            if folder == root:
                break


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
