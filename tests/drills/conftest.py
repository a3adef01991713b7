"""Common fixtures of the drills: a served organisation, a tenant on it, and its result without faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from tests.drills.ledger import TODAY, StoredResult
from tests.support.deployments import DAYS, Deployment, deployment, prepared, server

__all__ = ["deployment", "prepared", "server"]


@pytest.fixture(scope="session")
def organisation() -> Organisation:
    """Return a small organisation of a few days up to today, because the drilled processes use today's date."""
    return Organisation.generate(DemoSpec(today=TODAY, size="small", days=DAYS))


@pytest.fixture(scope="session")
def undisturbed(organisation: Organisation, prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> StoredResult:
    """Return the stored result of a tenant of the same organisation, calculated without faults."""
    with DemoServer(organisation) as server:
        tenant = Deployment.copied(prepared, server, tmp_path_factory.mktemp("undisturbed"))
        outcome = StoredResult.of(tenant.store)
        tenant.store.close()
    return outcome


@pytest.fixture(autouse=True)
def _outside(process: None) -> None:
    """Declare that drills use processes."""
