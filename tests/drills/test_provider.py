"""For any response of the provider, a run ends by itself, reports the problem correctly, and writes nothing wrong; when
the provider has recovered, the next run is complete."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from chargeback.demo.app import ServerOptions
from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.verify import verify
from tests.drills.cases import cases
from tests.drills.ledger import Ledger, StoredResult
from tests.support.deployments import Deployment
from tests.support.runs import recorded_runs, run_to_its_end

COSTS = "/billing/v1/costs"
ACCOUNTS = "/iam/v2/service-accounts"

#: A provider that repeats what it was sent, which must not be logged.
ECHO = '{"errors": [{"title": "Unauthorized", "detail": "who is SECRET?"}]}'


@dataclass(frozen=True)
class Case:
    """One fault: its path, the outcome of a run under it, and the recorded error.

    Attributes:
        name: the fault's name in the ledger.
        says: part of an error of the run; empty if the run survives the fault.
        largest_page: the largest page size of the provider.
        time_limit: seconds that a run may take; 0 is no limit.
    """

    name: str
    path: str
    fault: Fault
    ends: RunOutcome
    says: str = ""
    largest_page: int | None = None
    time_limit: int = 0

    def __str__(self) -> str:
        return f"{self.name} at {self.path}: {self.ends}"


FAILED, PARTLY, COMPLETED = RunOutcome.FAILED, RunOutcome.COMPLETED_WITH_ERRORS, RunOutcome.COMPLETED

CASES = (
    Case("provider answers truncated JSON", COSTS, Fault("truncated", times=2), COMPLETED),
    Case("provider pages for ever", COSTS, Fault("endless_paging", times=None), PARTLY, "repeats pages"),
    Case("provider answers 401", COSTS, Fault(status=401, body=ECHO, times=None), FAILED, "HTTP 401"),
    Case("provider repeats pages", ACCOUNTS, Fault("duplicated_page", times=None), FAILED, "repeat", largest_page=5),
    Case("provider drips slowly", COSTS, Fault("slow_drip", times=None, delay=0.005), COMPLETED),
    Case("provider answers 403", ACCOUNTS, Fault(status=403, times=None), FAILED, "HTTP 403"),
    Case("provider answers 404", COSTS, Fault(status=404, times=None), FAILED, "HTTP 404"),
    Case("provider answers a storm of 429", COSTS, Fault(status=429, times=8, retry_after=0.2), COMPLETED),
    Case("provider answers 500", COSTS, Fault(status=500, times=None), FAILED, "HTTP 500"),
    Case("provider answers HTML", COSTS, Fault("html", status=200, times=2), COMPLETED),
    Case("provider answers 403", COSTS, Fault(status=403, times=None), FAILED, "HTTP 403"),
    Case("provider answers a storm of 429", "/iam", Fault(status=429, times=20, retry_after=1), COMPLETED),
    Case("provider answers 500", ACCOUNTS, Fault(status=500, times=None), FAILED, "HTTP 500"),
    Case("provider answers 500", COSTS, Fault(status=500, times=3), COMPLETED),
    Case("provider answers truncated JSON", COSTS, Fault("truncated", times=None), FAILED, "not complete JSON"),
    Case("provider answers truncated JSON", ACCOUNTS, Fault("truncated", times=None), FAILED, "not complete JSON"),
    Case("provider answers HTML", COSTS, Fault("html", status=200, times=None), FAILED, "(text/html"),
    Case("provider answers HTML", ACCOUNTS, Fault("html", times=None), FAILED, "HTTP 502"),
    Case("provider pages for ever", ACCOUNTS, Fault("endless_paging", times=None), FAILED, "repeats pages"),
    # The response for seven days repeats pages; that for a single day is one page.
    Case("provider repeats pages", COSTS, Fault("duplicated_page", times=None), COMPLETED, largest_page=100),
    Case("provider repeats pages", COSTS, Fault("duplicated_page", times=None), PARTLY, "repeat", largest_page=20),
    Case("provider drips slowly", ACCOUNTS, Fault("slow_drip", times=None, delay=0.1), COMPLETED),
    Case("provider drips slowly", COSTS, Fault("slow_drip", times=None, delay=30), RunOutcome.TIMED_OUT, time_limit=20),
)


@cases([], CASES)
def test_a_broken_provider(
    case: Case, organisation: Organisation, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """The run under the fault ends as the table says; the next one is complete; and if the fault returns, calculated
    days stay as they are."""
    for number in range(tries):
        with DemoServer(organisation, options=ServerOptions(largest_page=case.largest_page)) as server:
            deployment = Deployment.within(server, tmp_path / f"{number}")
            with ledger.drill(case.name) as drill:
                _limit_time(deployment, case.time_limit)
                _run_under(case, deployment)
                _nothing_wrong_is_stored(deployment, undisturbed)
                server.faults.clear()
                assert deployment.run().outcome is COMPLETED
                drill.compare(undisturbed, deployment.store)
                _run_again_under(case, deployment)
                drill.compare(undisturbed, deployment.store)
            deployment.store.close()


def _limit_time(deployment: Deployment, seconds: int) -> None:
    document = yaml.safe_load(deployment.config_file.read_text())
    document["tenants"]["acme"]["tenant_execution_timeout_seconds"] = seconds
    deployment.config_file.write_text(yaml.safe_dump(document))


def _lay(case: Case, server: DemoServer) -> None:
    body = case.fault.body
    server.faults.add(case.path, replace(case.fault, body=body and body.replace("SECRET", server.secret)))


def _run_under(case: Case, deployment: Deployment) -> None:
    """Execute the first run, in a separate process."""
    server = deployment.server
    _lay(case, server)
    ended = run_to_its_end(deployment.config_file)
    assert server.faults.hits(case.path) > 0
    assert ended.code == (0 if case.ends is COMPLETED else 1), ended.said
    (run,) = recorded_runs(deployment.store)
    assert run.outcome == case.ends
    for told in (ended.said, *run.errors):
        assert server.secret not in told
    if case.ends is COMPLETED:
        assert run.errors == ()
    elif case.ends is RunOutcome.TIMED_OUT:
        assert run.errors == (f"Execution timed out after {case.time_limit}s",)
    else:
        # The error has the path, the reason and the key.
        assert [error for error in run.errors if case.path in error and case.says in error and "ccloud_api" in error]


def _run_again_under(case: Case, deployment: Deployment) -> None:
    """Execute another run when everything is calculated; a time limit needs a separate process."""
    _lay(case, deployment.server)
    if case.time_limit:
        assert run_to_its_end(deployment.config_file).code == 1
    else:
        assert deployment.run().outcome is case.ends
    assert recorded_runs(deployment.store)[-1].outcome == case.ends


def _nothing_wrong_is_stored(deployment: Deployment, undisturbed: StoredResult) -> None:
    """Check that the calculated days sum to their bills and equal the final ones."""
    assert not [check for check in verify(deployment.store) if check.is_wrong]
    rows = undisturbed.rows.to_pylist()
    for state in deployment.states():
        if state.chargebacks.is_current:
            there = deployment.rows(state.tracking_date).to_pylist()
            assert there == [row for row in rows if row["date"] == state.tracking_date]
