"""A tenant's facts, as passed to emitters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chargeback.pipeline.emit_facts import StoredFacts
from chargeback.reports.focus.lookups import FocusTenant
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.tenant import TenantStore
from tests.support.facts import tenant_store
from tests.support.focus import PROFILE


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TenantStore]:
    """The empty storage of tenant acme."""
    with tenant_store(tmp_path / "storage") as store:
        yield store


@pytest.fixture(scope="module")
def engine() -> Iterator[QueryEngine]:
    """The query engine of a process."""
    engine = QueryEngine(threads=2)
    yield engine
    engine.close()


@pytest.fixture
def facts(store: TenantStore, engine: QueryEngine) -> StoredFacts:
    """Return the facts of acme, for a run that is not stopped."""
    bill = FocusTenant(store.tenant_name, store.tenant_id, PROFILE)
    return StoredFacts(store, engine, CancellationToken(), lambda: None, bill)
