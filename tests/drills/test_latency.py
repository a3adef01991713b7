"""The duration of a run whose facts are in a distant object store, compared with a disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from chargeback.demo.config import CUTOFF_DAYS
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from tests.drills.ledger import TODAY
from tests.support.databases import scratch_database
from tests.support.deployments import Deployment
from tests.support.network import network
from tests.support.objects import ObjectServer, object_server
from tests.support.processes import command

DAYS: Final = 15
DELAY: Final = 0.03
#: How many times as long as on a disk the run may take.
BAR: Final = 3.0


@pytest.fixture(scope="module")
def organisation() -> Organisation:
    """Return a small organisation of fifteen days with a bill."""
    return Organisation.generate(DemoSpec(today=TODAY, size="small", days=DAYS + CUTOFF_DAYS))


@pytest.mark.drill
@pytest.mark.timeout(1800)
def test_fifteen_days_with_30_ms_for_each_request(organisation: Organisation, tmp_path: Path) -> None:
    """The first run of a tenant takes at most three times as long as on a disk."""
    with network(object_server(), delay=DELAY) as seen, DemoServer(organisation) as demo:
        near = _seconds_of_a_run(Deployment.within(demo, tmp_path / "near"), tmp_path, None)
        far = _seconds_of_a_run(Deployment.within(demo, tmp_path / "far"), tmp_path, seen.server)
    print(f"{near:.1f} s and {far:.1f} s: {far / near:.1f} times; {seen.requests.total()} requests")
    assert far / near <= BAR


def _seconds_of_a_run(deployment: Deployment, folder: Path, server: ObjectServer | None) -> float:
    with scratch_database("postgresql", folder) as connection_string:
        deployment.store_in(connection_string, server)
        start = time.monotonic()
        assert command(deployment.config_file, "run").wait() == 0
        taken = time.monotonic() - start
        assert len(deployment.store.facts.snapshot(CHARGEBACKS_TABLE).days) == DAYS
        deployment.store.close()
    return taken
