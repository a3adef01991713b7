"""Poorer evidence never replaces better: stored measurements and listings stay, and missing ones are added later."""

from __future__ import annotations

from pathlib import Path

from chargeback.demo.faults import Fault
from chargeback.demo.server import DemoServer
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.store.facts.tables import USAGE_TABLE, read_day
from tests.drills.ledger import Ledger, StoredResult
from tests.drills.ledger import tries as tried
from tests.support.deployments import Deployment

METRICS = "/prometheus"
STATEMENTS = "/flink/"
_NOTHING = '{"status": "success", "data": {"resultType": "vector", "result": []}}'


@tried(0, 3)
def test_metrics_are_away_during_a_recalculation(
    server: DemoServer, prepared: Path, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """Each day keeps its measurements and rows, however often it is recalculated without metrics, and if the metrics
    return empty."""
    for number in range(tries):
        deployment = Deployment.copied(prepared, server, tmp_path / f"{number}")
        with ledger.drill("metrics away during a recalculation") as drill:
            usage = _usage(deployment)
            for fault in (Fault(status=403, times=None), Fault(status=200, body=_NOTHING, times=None)):
                server.faults.add(METRICS, fault)
                for _ in range(3):
                    result = deployment.run(RunRequest(recalculate=True))
                    assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
                    assert any("the stored measurements are kept" in error for error in result.errors)
                server.faults.clear()
                drill.compare(undisturbed, deployment.store)
                assert _usage(deployment) == usage
            assert deployment.run(RunRequest(recalculate=True)).outcome is RunOutcome.COMPLETED
            drill.compare(undisturbed, deployment.store)
        deployment.store.close()


@tried(0, 3)
def test_an_optional_listing_fails_once(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """Days calculated without an optional listing are marked; after the next listing, they equal those of an
    undisturbed tenant, even without metrics."""
    for number in range(tries):
        deployment = Deployment.within(server, tmp_path / f"{number}")
        with ledger.drill("an optional listing fails once") as drill:
            server.faults.add(STATEMENTS, Fault(status=403, times=None))
            assert deployment.run().outcome is RunOutcome.COMPLETED_WITH_ERRORS
            assert server.faults.hits(STATEMENTS) > 0
            assert all(state.missing_listings == ["flink_statement"] for state in deployment.states())
            server.faults.clear()
            server.faults.add(METRICS, Fault(status=500, times=None))
            assert deployment.run().outcome is RunOutcome.COMPLETED
            assert not any(state.incomplete for state in deployment.states())
            drill.compare(undisturbed, deployment.store)
            server.faults.clear()
        deployment.store.close()


def _usage(deployment: Deployment) -> list[object]:
    days = [state.tracking_date for state in deployment.states()]
    return [read_day(deployment.store.facts, USAGE_TABLE, day).to_pylist() for day in days]
