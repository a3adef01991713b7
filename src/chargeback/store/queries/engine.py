"""The query engine of the process, and questions that can be called off.

One in-memory DuckDB serves all tenants; each question gets a cursor of its own, so that questions run side by side and
one can be interrupted without touching another. The engine holds no data: it reads the files it is told to.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from chargeback.errors import QueryTimeout, StorageError
from chargeback.store.facts.files import damage_named_in

_INTERRUPTED = "INTERRUPT"


class Question:
    """One question to the store, asked in one thread and perhaps called off from another.

    An interrupt is lost on a cursor that is just not executing: whoever calls off repeats :meth:`cancel` until the
    asking thread has ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._interrupts: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether the question was called off."""
        return self._cancelled

    def cancel(self) -> None:
        """Call the question off: what runs is interrupted, what has not begun never will. May block for a moment."""
        with self._lock:
            self._cancelled = True
            interrupts = list(self._interrupts)
        for interrupt in interrupts:
            interrupt()

    def check(self) -> None:
        """Go on only if nobody called the question off.

        Raises:
            QueryTimeout: somebody did.
        """
        if self._cancelled:
            raise QueryTimeout("the question was called off")

    @contextmanager
    def interruptible(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """While the ``with`` lasts, :meth:`cancel` calls ``interrupt``."""
        with self._lock:
            self._interrupts.append(interrupt)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)


class Cursor:
    """A cursor of the engine for one question. Values are bound by name: ``$name`` in the SQL.

    Raises (everywhere): QueryTimeout when the question was called off; StorageError when a file cannot be read or
    the answer needs more memory than the engine has.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, question: Question) -> None:
        self._cursor = cursor
        self._question = question

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """All rows of the answer."""
        self._question.check()
        with errors_of_queries():
            return self._cursor.execute(sql, dict(parameters or {})).fetchall()

    def run(self, sql: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run a statement for its effect."""
        self._question.check()
        with errors_of_queries():
            self._cursor.execute(sql, dict(parameters or {}))

    def batches(self, sql: str, parameters: Mapping[str, object], *, size: int) -> Iterator[pa.RecordBatch]:
        """The rows of the answer, ``size`` at a time, computed while they are read: memory stays constant."""
        self._question.check()
        with errors_of_queries():
            # A relation streams; the result of execute() would be materialised first, beyond every memory limit.
            reader = self._cursor.sql(sql, params=dict(parameters)).to_arrow_reader(size)
            yield from reader

    def register(self, name: str, table: pa.Table) -> None:
        """Make a small table known under ``name``, to this cursor alone."""
        self._cursor.register(name, table)


class QueryEngine:
    """An in-memory DuckDB with a memory limit. Safe for use by several threads; every question takes one cursor.

    Raises:
        OSError: there is no place for temporary files.
    """

    def __init__(self, *, memory_limit: str = "1GB", threads: int | None = None) -> None:
        self._temporary = tempfile.mkdtemp(prefix="chargeback-queries-")
        self._connection = duckdb.connect(
            config={
                "memory_limit": memory_limit,
                "threads": threads or os.cpu_count() or 1,
                "temp_directory": self._temporary,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
            }
        )
        # A file never changes once it is part of a table.
        self._connection.execute("SET GLOBAL parquet_metadata_cache = true")
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")

    @contextmanager
    def asking(self, question: Question) -> Iterator[Cursor]:
        """A cursor for ``question``, closed at the end of the ``with``."""
        question.check()
        cursor = self._connection.cursor()
        try:
            with question.interruptible(cursor.interrupt):
                yield Cursor(cursor, question)
        finally:
            cursor.close()

    def close(self) -> None:
        """Give back memory and temporary files. Questions still under way fail."""
        self._connection.interrupt()
        self._connection.close()
        with suppress(OSError):
            shutil.rmtree(Path(self._temporary))


@contextmanager
def errors_of_queries() -> Iterator[None]:
    """Turns what DuckDB and its Arrow reader raise into errors of ours."""
    try:
        yield
    except duckdb.InterruptException as error:
        raise QueryTimeout("the question was called off") from error
    except duckdb.OutOfMemoryException as error:
        raise StorageError("the answer needs more memory than the query engine has; ask for fewer days") from error
    except (duckdb.IOException, duckdb.InvalidInputException) as error:  # a file is missing, or is no Parquet
        raise _unreadable(error) from error
    except OSError as error:
        if str(error).startswith(_INTERRUPTED):
            raise QueryTimeout("the question was called off") from error
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> StorageError:
    return damage_named_in(str(error)) or StorageError(f"the facts cannot be read: {error}")
