"""Questions run side by side, can be called off, and their failures are ours."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from chargeback.errors import QueryTimeout, StorageError
from chargeback.store.queries.engine import QueryEngine, Question
from tests.store.queries.conftest import Ask

HEAVY = "SELECT count(*) FROM range(10000000000) a(i) WHERE hash(i) % 7 = 8"


def _cancel_repeatedly(question: Question, done: threading.Event) -> None:
    time.sleep(0.2)
    while not done.is_set():
        question.cancel()
        time.sleep(0.02)


def test_a_question_called_off_is_interrupted(engine: QueryEngine) -> None:
    """A heavy query ends soon after its question was called off, and the engine goes on working."""
    question, done = Question(), threading.Event()
    canceller = threading.Thread(target=_cancel_repeatedly, args=(question, done))
    canceller.start()
    with pytest.raises(QueryTimeout), engine.asking(question) as cursor:
        cursor.rows(HEAVY)
    done.set()
    canceller.join()
    with engine.asking(Question()) as cursor:
        assert cursor.rows("SELECT 1") == [(1,)]


def test_a_stream_called_off_is_interrupted(engine: QueryEngine) -> None:
    """The Arrow reader's own kind of error means the same: called off."""
    question, done = Question(), threading.Event()
    canceller = threading.Thread(target=_cancel_repeatedly, args=(question, done))
    canceller.start()
    sql = "SELECT sum(hash(i)) FROM range(10000000000) a(i)"
    with pytest.raises(QueryTimeout), engine.asking(question) as cursor:
        list(cursor.batches(sql, {}, size=1000))
    done.set()
    canceller.join()


def test_a_question_called_off_before_it_was_asked_never_runs(engine: QueryEngine) -> None:
    """What waited in a queue while its time ran out is not begun."""
    question = Question()
    question.cancel()
    with pytest.raises(QueryTimeout), engine.asking(question) as cursor:
        cursor.rows(HEAVY)


def test_calling_off_one_question_leaves_others_alone(engine: QueryEngine) -> None:
    """Each question has a cursor of its own."""
    other = Question()
    with engine.asking(Question()) as cursor, engine.asking(other):
        other.cancel()
        assert cursor.rows("SELECT count(*) FROM range(1000)") == [(1000,)]


def test_a_missing_file_is_a_storage_error(ask: Ask, tmp_path: Path) -> None:
    """Callers need not know DuckDB's errors."""
    with pytest.raises(StorageError):
        ask(lambda cursor: cursor.rows("SELECT * FROM read_parquet($f)", {"f": [str(tmp_path / "no.parquet")]}))


def test_more_than_memory_is_a_storage_error() -> None:
    """An answer that does not fit says so instead of failing unforeseen."""
    engine = QueryEngine(memory_limit="20MB", threads=1)
    with pytest.raises(StorageError, match="memory"), engine.asking(Question()) as cursor:
        cursor.rows("SELECT list(i::VARCHAR) FROM range(100000000) a(i)")
    engine.close()


def test_python_variables_are_not_tables(ask: Ask) -> None:
    """SQL sees only what it is given."""
    secrets = "not a table"  # noqa: F841
    with pytest.raises(Exception, match="secrets"):
        ask(lambda cursor: cursor.rows("SELECT * FROM secrets"))
