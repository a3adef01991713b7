"""Queries run side by side, can be cancelled, and their failures are ours."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from chargeback.errors import QueryTimeout, StorageError
from chargeback.store.queries.engine import (
    SMALLEST_MEMORY,
    CancellationToken,
    QueryEngine,
    available_memory,
    available_processors,
    default_memory,
)
from tests.support.readers import Ask

HEAVY = "SELECT count(*) FROM range(10000000000) a(i) WHERE hash(i) % 7 = 8"


def _cancel_repeatedly(token: CancellationToken, done: threading.Event) -> None:
    time.sleep(0.2)
    while not done.is_set():
        token.cancel()
        time.sleep(0.02)


def test_a_cancelled_query_is_interrupted(engine: QueryEngine) -> None:
    """A heavy query ends soon after its token was cancelled, and the engine goes on working."""
    token, done = CancellationToken(), threading.Event()
    canceller = threading.Thread(target=_cancel_repeatedly, args=(token, done))
    canceller.start()
    with pytest.raises(QueryTimeout), engine.cursor(token) as cursor:
        cursor.rows(HEAVY)
    done.set()
    canceller.join()
    with engine.cursor(CancellationToken()) as cursor:
        assert cursor.rows("SELECT 1") == [(1,)]


def test_a_cancelled_stream_is_interrupted(engine: QueryEngine) -> None:
    """The Arrow reader's own kind of error means the same: cancelled."""
    token, done = CancellationToken(), threading.Event()
    canceller = threading.Thread(target=_cancel_repeatedly, args=(token, done))
    canceller.start()
    sql = "SELECT sum(hash(i)) FROM range(10000000000) a(i)"
    with pytest.raises(QueryTimeout), engine.cursor(token) as cursor:
        list(cursor.batches(sql, {}, size=1000))
    done.set()
    canceller.join()


def test_a_query_cancelled_before_its_start_never_runs(engine: QueryEngine) -> None:
    """What waited in a queue while its time ran out is not begun."""
    token = CancellationToken()
    token.cancel()
    with pytest.raises(QueryTimeout), engine.cursor(token) as cursor:
        cursor.rows(HEAVY)


def test_cancelling_one_query_leaves_others_alone(engine: QueryEngine) -> None:
    """Each token has a cursor of its own."""
    other = CancellationToken()
    with engine.cursor(CancellationToken()) as cursor, engine.cursor(other):
        other.cancel()
        assert cursor.rows("SELECT count(*) FROM range(1000)") == [(1000,)]


def test_a_missing_file_is_a_storage_error(ask: Ask, tmp_path: Path) -> None:
    """Callers need not know DuckDB's errors."""
    with pytest.raises(StorageError):
        ask(lambda cursor: cursor.rows("SELECT * FROM read_parquet($f)", {"f": [str(tmp_path / "no.parquet")]}))


def test_more_than_memory_is_a_storage_error() -> None:
    """An answer that does not fit says so instead of failing unforeseen."""
    engine = QueryEngine(memory=20_000_000, threads=1)
    with pytest.raises(StorageError, match="memory"), engine.cursor(CancellationToken()) as cursor:
        cursor.rows("SELECT list(i::VARCHAR) FROM range(100000000) a(i)")
    engine.close()


def test_the_machine_bounds_an_engine_without_limits() -> None:
    """A quarter of the memory and all processors that the process may use, in the engine's own words."""
    for engine, memory, threads in (
        (QueryEngine(), default_memory(), available_processors()),
        (QueryEngine(memory=512 * 2**20, threads=3), 512 * 2**20, 3),
    ):
        with engine.cursor(CancellationToken()) as cursor:
            ((limit, count),) = cursor.rows("SELECT current_setting('memory_limit'), current_setting('threads')")
        engine.close()
        shown, unit = limit.split(" ")
        assert float(shown) * 1024 ** ("KMGT".index(unit[0]) + 1) == pytest.approx(memory, rel=0.1)
        assert count == threads
    assert SMALLEST_MEMORY <= default_memory() <= max(available_memory() // 4, SMALLEST_MEMORY)


def test_python_variables_are_not_tables(ask: Ask) -> None:
    """SQL sees only what it is given."""
    secrets = "not a table"  # noqa: F841
    with pytest.raises(Exception, match="secrets"):
        ask(lambda cursor: cursor.rows("SELECT * FROM secrets"))
