"""Starting runs and watching them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import httpx
import pytest

from chargeback.errors import EngineBusy, LeaseHeld, NoRunner, TenantSuspended
from chargeback.model.run_request import RunRequest
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.control.runs import (
    RunLogLine,
    add_log,
    cancelled_by,
    clear_suspension,
    finish_run,
    start_run,
    suspend,
)
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.support.processes import eventually
from tests.support.serving import client_of, services_for

URL = f"{ACME}/pipeline/run"


@dataclass
class Runner:
    """A pipeline that accepts runs, or refuses them."""

    refusal: Exception | None = None
    requests: list[tuple[str, RunRequest]] = field(default_factory=list)

    def trigger(self, tenant_name: str, request: RunRequest, begin: Callable[[], object]) -> None:
        """Remember the request."""
        if self.refusal is not None:
            raise self.refusal
        self.requests.append((tenant_name, request))


def test_a_run_is_accepted(store: TenantStore) -> None:
    """The response is a 202 with the address of the status; the body is optional."""
    runner = Runner()
    with client_of(services_for(store, pipeline=runner)) as client:
        response = client.post(URL)
        assert response.status_code == 202
        assert response.headers["location"] == f"{ACME}/pipeline/status"
        assert response.json()["tenant_name"] == "acme"
        assert response.json()["status"] == "started"
        body = {"start_date": "2026-01-01", "end_date": "2026-01-02", "recalculate": True}
        assert client.post(URL, json=body).status_code == 202
        assert client.post(URL, json=body | {"accept_less": True}).status_code == 202
        refused = client.post(URL, json={"accept_less": True})
        assert (refused.status_code, "requires recalculate" in refused.text) == (400, True)
        assert client.get(response.headers["location"]).status_code == 200
    assert runner.requests == [
        ("acme", RunRequest()),
        ("acme", RunRequest(date(2026, 1, 1), date(2026, 1, 2), recalculate=True)),
        ("acme", RunRequest(date(2026, 1, 1), date(2026, 1, 2), recalculate=True, accept_less=True)),
    ]


@pytest.mark.parametrize(
    ("refusal", "status", "detail"),
    [
        (LeaseHeld("whatever"), 409, "Pipeline is already running for tenant acme"),
        (TenantSuspended("Tenant acme is suspended: five failures"), 409, "Tenant acme is suspended: five failures"),
        (NoRunner("the service is stopping"), 400, "the service is stopping"),
        (EngineBusy("as many as may be"), 503, "as many as may be"),
    ],
)
def test_refusals(store: TenantStore, refusal: Exception, status: int, detail: str) -> None:
    """Each refusal says why."""
    with client_of(services_for(store, pipeline=Runner(refusal))) as client:
        response = client.post(URL)
    assert (response.status_code, response.json()["detail"]) == (status, detail)
    assert response.headers.get("retry-after") == ("30" if status == 503 else None)


@pytest.mark.parametrize("mode", ["api", "both"])
def test_outside_mode_both_there_is_no_runner(store: TenantStore, mode: str) -> None:
    """A 400 says how to start a run."""
    runner = Runner() if mode == "api" else None
    with client_of(services_for(store, mode=mode, pipeline=runner)) as client:
        response = client.post(URL)
    assert response.status_code == 400
    detail = response.json()["detail"]
    assert detail.startswith("No WorkflowRunner available - run in both mode")
    assert "`chargeback run --tenant acme`" in detail


def test_status_of_a_run(own_store: TenantStore, own_client: httpx.Client) -> None:
    """The status shows nothing, then the run, then its result."""
    url = f"{ACME}/pipeline/status"
    never = {
        "tenant_name": "acme",
        "is_running": False,
        "progress": None,
        "permanent_failure": None,
        "last_run": None,
        "last_result": None,
    }
    assert own_client.get(url).json() == never
    lease = acquire(own_store.control, LeaseOwner.this_process())
    with lease.write() as connection:
        number = start_run(connection, lease.epoch)
    on = {"stage": None, "date": None, "done": 0, "total": 0, "is_cancelled": False}
    assert own_client.get(url).json() == never | {"is_running": True, "progress": on}
    lease.show("calculating", date(2026, 1, 1), 3, 35)
    at = {"stage": "calculating", "date": "2026-01-01", "done": 3, "total": 35, "is_cancelled": False}
    assert own_client.get(url).json()["progress"] == at
    counts = {"dates_gathered": 2, "dates_calculated": 1, "chargeback_rows_written": 10}
    with lease.write() as connection:
        finish_run(connection, number, outcome="completed_with_errors", errors=["2026-01-01: x"], counts=counts)
    lease.release()
    status = own_client.get(url).json()
    assert status["is_running"] is False
    assert status["last_result"] == counts | {"errors": ["2026-01-01: x"], "completed_at": status["last_run"]}


def test_a_run_is_cancelled(own_store: TenantStore, own_client: httpx.Client) -> None:
    """A run is cancelled once, and the audit log names the caller; without a run, nothing happens. The log of the run
    can be read."""
    url = f"{ACME}/pipeline/cancel"
    assert own_client.post(url).json() == {"run_id": None}
    assert own_client.get(f"{ACME}/pipeline/log").json()["items"] == []
    lease = acquire(own_store.control, LeaseOwner.this_process())
    with lease.write() as connection:
        number = start_run(connection, lease.epoch)
        add_log(connection, number, [RunLogLine(datetime(2026, 1, 1, tzinfo=UTC), "INFO", "Gathering begins.")])
    for _ in range(2):
        assert own_client.post(url).json() == {"run_id": str(number)}
    assert own_client.get(f"{ACME}/pipeline/status").json()["progress"]["is_cancelled"]
    with own_store.control.read() as connection:
        assert cancelled_by(connection, number) == "api"
    entries = own_client.get(f"{ACME}/audit", params={"what": "run.cancelled"}).json()["items"]
    assert [(each["who"], each["target"]) for each in entries] == [("api", f"run/{number}")]
    line = {"at": "2026-01-01T00:00:00Z", "level": "INFO", "message": "Gathering begins."}
    for query in ({}, {"run_id": number}):
        assert own_client.get(f"{ACME}/pipeline/log", params=query).json()["items"] == [line]
    lease.release()
    assert own_client.post(url).json() == {"run_id": None}


def test_what_is_stopped_says_so_everywhere(own_store: TenantStore, own_client: httpx.Client) -> None:
    """A suspension shows in readiness, metrics and the pipeline's status, because all read the control database."""

    def told() -> list[object]:
        readiness = own_client.get("/api/v1/readiness").json()["tenants"][0]["permanent_failure"]
        status = own_client.get(f"{ACME}/pipeline/status").json()["permanent_failure"]
        return [readiness, status, 'chargeback_suspended{tenant="acme"} 1' in own_client.get("/metrics").text]

    with own_store.control.write() as connection:
        suspend(connection, "gathering failed 5 times in a row; fix the cause, then restart the worker")
    reason = "gathering failed 5 times in a row; fix the cause, then restart the worker"
    assert told() == [reason, reason, True]
    with own_store.control.write() as connection:
        clear_suspension(connection)
    eventually(lambda: told() == [None, None, False])
