"""A query engine and empty tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.engine import Cursor, QueryEngine, Question
from tests.support.facts import new_facts

Ask = Callable[[Callable[[Cursor], Any]], Any]


@pytest.fixture(scope="module")
def engine() -> Iterator[QueryEngine]:
    """The query engine of a process."""
    engine = QueryEngine(threads=2)
    yield engine
    engine.close()


@pytest.fixture
def ask(engine: QueryEngine) -> Ask:
    """Asks one question."""

    def _ask(job: Callable[[Cursor], Any]) -> Any:
        with engine.asking(Question()) as cursor:
            return job(cursor)

    return _ask


@pytest.fixture
def facts(tmp_path: Path) -> FactTables:
    """Empty tables in a folder whose name needs care."""
    return new_facts(tmp_path / "facts 100% & more")
