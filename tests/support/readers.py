"""A query engine, empty tables, and a reader of them, for tests of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.engine import CancellationToken, Cursor, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import new_facts

Ask = Callable[[Callable[[Cursor], Any]], Any]
#: Takes a function of a reader, and the tags for the reader.
Read = Callable[..., Any]


@pytest.fixture(scope="module")
def engine() -> Iterator[QueryEngine]:
    """The query engine of a process."""
    engine = QueryEngine(threads=2)
    yield engine
    engine.close()


@pytest.fixture
def ask(engine: QueryEngine) -> Ask:
    """Runs queries with one cursor."""

    def _ask(job: Callable[[Cursor], Any]) -> Any:
        with engine.cursor(CancellationToken()) as cursor:
            return job(cursor)

    return _ask


@pytest.fixture
def facts(tmp_path: Path) -> FactTables:
    """Empty tables in a folder whose name needs care."""
    return new_facts(tmp_path / "facts 100% & more")


@pytest.fixture
def read(engine: QueryEngine, facts: FactTables) -> Read:
    """Opens a reader of the tables."""

    def _read(job: Callable[[TenantReader], Any], tags: TagIndex | None = None, tables: FactTables = facts) -> Any:
        with engine.cursor(CancellationToken()) as cursor:
            return job(TenantReader(cursor, tables, tags or TagIndex()))

    return _read
