"""For any response of the metrics source, the bill is gathered and nothing is split without the measurements; when the
source has recovered, the next run ends with the result of an undisturbed tenant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chargeback.config import load_configuration
from chargeback.demo.app import ServerOptions
from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.rules import topic_plan
from chargeback.recompute.verify import ATTRIBUTED, verify, verify_topics
from chargeback.store.control import days
from tests.drills.cases import cases
from tests.drills.ledger import TODAY, Ledger, StoredResult
from tests.support.deployments import Deployment
from tests.support.runs import recorded_runs, run_to_its_end

METRICS = "/prometheus"
PASSWORD = "metrics-password-of-the-drill"

#: A source that repeats what it was sent, which must not be logged.
ECHO = '{"status": "error", "errorType": "auth", "error": "who is SECRET?"}'.replace("SECRET", PASSWORD)


#: A source that is partly unavailable: only its warning shows that something is missing.
PARTIAL = '{"status": "success", "data": {"resultType": "vector", "result": []}, "warnings": ["a store is away"]}'


@dataclass(frozen=True)
class Case:
    """One fault, and the error of the pending days; empty if the run survives it without help."""

    name: str
    fault: Fault
    says: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.says or 'survived'}"


CASES = (
    Case("metrics answer in part", Fault(status=200, body=PARTIAL, times=None), "the answer is incomplete: a store is"),
    Case("metrics answer 500", Fault(status=500, times=None), "HTTP 500"),
    Case("metrics answer a storm of 429", Fault(status=429, times=40, retry_after=0.2)),
    Case("metrics answer truncated JSON", Fault("truncated", times=None), "not complete JSON"),
    Case("metrics reset every connection", Fault("reset", times=None), "the connection broke"),
    Case("metrics answer 401", Fault(status=401, body=ECHO, times=None), "HTTP 401"),
    Case("metrics answer 403", Fault(status=403, times=None), "HTTP 403"),
    Case("metrics answer 404", Fault(status=404, times=None), "HTTP 404"),
    Case("metrics answer HTML", Fault("html", status=200, times=None), "(text/html"),
    Case("metrics drip slowly", Fault("slow_drip", times=None, delay=0.02)),
    Case("metrics answer 500", Fault(status=500, times=3)),
    Case("metrics answer 500", Fault(status=503, times=None, retry_after=1), "HTTP 503"),
    Case("metrics answer truncated JSON", Fault("truncated", times=3)),
    Case("metrics answer HTML", Fault("html", times=None), "HTTP 502"),
    Case("metrics reset every connection", Fault("reset", times=3)),
)


@pytest.fixture
def server(organisation: Organisation) -> Iterator[DemoServer]:
    """Yield a server of the organisation with a password for the metrics."""
    with DemoServer(organisation, options=ServerOptions(prometheus_basic=("drill", PASSWORD))) as running:
        yield running


def _deployment(server: DemoServer, folder: Path) -> Deployment:
    deployment = Deployment.within(server, folder)
    known = f"auth_type: basic\n        username: drill\n        password: {PASSWORD}"
    text = deployment.config_file.read_text()
    assert "auth_type: none" in text
    deployment.config_file.write_text(text.replace("auth_type: none", known))
    deployment.tenant = load_configuration(deployment.config_file).tenants["acme"]
    return deployment


@cases([], CASES)
def test_broken_metrics(
    case: Case, server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """Days wait for the metrics, with the reason recorded; the next run completes them; and if the fault returns,
    calculated days stay as they are."""
    for number in range(tries):
        deployment = _deployment(server, tmp_path / f"{number}")
        with ledger.drill(case.name) as drill:
            server.faults.add(METRICS, case.fault)
            _run_under(case, deployment)
            server.faults.clear()
            assert deployment.run().outcome is RunOutcome.COMPLETED
            drill.compare(undisturbed, deployment.store)
            _every_topic_has_its_share(deployment)
            server.faults.add(METRICS, case.fault)
            assert deployment.run().outcome is RunOutcome.COMPLETED
            server.faults.clear()
            drill.compare(undisturbed, deployment.store)
        deployment.store.close()


def _run_under(case: Case, deployment: Deployment) -> None:
    ended = run_to_its_end(deployment.config_file)
    assert deployment.server.faults.hits(METRICS) > 0
    (run,) = recorded_runs(deployment.store)
    assert PASSWORD not in "".join((ended.said, *run.errors))
    assert not [check for check in verify(deployment.store) if check.is_wrong]
    if not case.says:
        assert (ended.code, run.outcome, run.errors) == (0, "completed", ()), ended.said
        return
    assert (ended.code, run.outcome) == (1, "completed_with_errors"), ended.said
    states = deployment.states()
    assert len(states) == 7
    for state in states:
        assert (state.billing_gathered, state.resources_gathered) == (True, True)
        assert (state.chargebacks.is_current, state.failed_attempts) == (False, 1)
        assert state.error is not None
        assert "metrics unavailable" in state.error
        assert "(source metrics)" in state.error
        assert case.says in state.error
        assert [error for error in run.errors if error.startswith("7 days (") and error.endswith(f": {state.error}")]


def _every_topic_has_its_share(deployment: Deployment) -> None:
    plan = topic_plan(deployment.tenant)
    assert plan is not None
    checks = list(verify_topics(deployment.store, plan, TODAY))
    assert {check.state for check in checks} == {ATTRIBUTED}
    assert not [check for check in checks if check.is_wrong]


@pytest.mark.drill
def test_days_that_went_without_metrics_come_back(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger
) -> None:
    """After three failed runs the days are calculated without metrics and marked; once the metrics are available, they
    are recalculated automatically."""
    deployment = _deployment(server, tmp_path / "patient")
    with ledger.drill("metrics answer 403") as drill:
        server.faults.add(METRICS, Fault(status=403, times=None))
        assert [deployment.run().outcome for _ in range(3)] == [RunOutcome.COMPLETED_WITH_ERRORS] * 3
        states = deployment.states()
        assert all(state.chargebacks.is_current and days.METRICS in state.incomplete for state in states)
        without = StoredResult.of(deployment.store)
        assert "METRICS_UNAVAILABLE" in without.rows["allocation_detail"].to_pylist()
        server.faults.clear()
        assert deployment.run().outcome is RunOutcome.COMPLETED
        drill.compare(undisturbed, deployment.store)
        _every_topic_has_its_share(deployment)
    deployment.store.close()
