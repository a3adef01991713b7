"""The engine: child processes under the lease, log lines, suspension, time limits and an orderly stop."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from sqlalchemy import select

from chargeback.config import Configuration, load_configuration
from chargeback.config.notifications import WebhookSettings
from chargeback.demo.faults import Fault
from chargeback.errors import LeaseHeld, NoRunner, TenantSuspended
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.engine import Engine, NextTurn, RunSlots, Schedule
from chargeback.pipeline.run_messages import Progress, RunOutcome
from chargeback.store.control import schema
from chargeback.store.control.events import SHADOW_READY, Event, add_events
from chargeback.store.control.lease import LeaseOwner, acquire
from tests.support.deployments import Deployment
from tests.support.processes import eventually
from tests.support.receiver import SECRET, Receiver

# Runs need processes.
pytestmark = pytest.mark.usefixtures("process")


@pytest.fixture
def configuration(deployment: Deployment) -> Configuration:
    """Return the deployment's configuration, as a service reads it."""
    return load_configuration(deployment.config_file)


@pytest.fixture
def start(deployment: Deployment, configuration: Configuration) -> Iterator[Callable[..., Engine]]:
    """Yield a function that makes engines with changed settings of the tenant; stop them at the end."""
    engines = []

    def make(listener: Callable[[Progress], None] | None = None, **settings: object) -> Engine:
        tenant = configuration.tenants["acme"]
        changed = replace(tenant, settings=tenant.settings.model_copy(update=settings))
        engines.append(Engine(replace(configuration, tenants={"acme": changed}), listener, clock=deployment.clock))
        return engines[-1]

    yield make
    for engine in engines:
        engine.stop()


def outcomes(deployment: Deployment) -> list[str]:
    """Return the outcomes of the runs so far."""
    with deployment.store.control.read() as connection:
        return list(connection.execute(select(schema.runs.c.outcome).order_by(schema.runs.c.run_id)).scalars())


def test_a_run_is_a_child_process_that_reports_and_is_logged(
    deployment: Deployment, start: Callable[..., Engine], caplog: pytest.LogCaptureFixture
) -> None:
    """Progress and result are returned, and a successful run is one line of the log."""
    caplog.set_level(logging.INFO)
    heard: list[Progress] = []
    (result,) = start(heard.append).run_once(["acme"], RunRequest())
    assert result.outcome is RunOutcome.COMPLETED
    assert heard[-1].rows == result.chargeback_rows_written > 0
    assert (
        f"Tenant acme: gathered={result.dates_gathered}, pending={result.dates_pending}, "
        f"calculated={result.dates_calculated}, rows={result.chargeback_rows_written}" in caplog.text
    )


def test_a_partial_run_is_logged_with_its_errors(
    deployment: Deployment, start: Callable[..., Engine], caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the errors of the run."""
    deployment.server.faults.add("/fcpm/v2/compute-pools", Fault(status=403, times=None))
    (result,) = start().run_once(["acme"], RunRequest())
    assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
    assert "Tenant acme completed with errors: [" in caplog.text


def test_a_trigger_takes_the_lease_before_it_returns(deployment: Deployment, start: Callable[..., Engine]) -> None:
    """While a run is in progress, a second trigger and a run elsewhere are refused; afterwards the lease is free."""
    deployment.server.faults.add("/org/v2/environments", Fault(status=None, delay=1))
    engine = start()
    engine.trigger("acme", RunRequest())
    with pytest.raises(LeaseHeld, match="Pipeline is already running for tenant acme"):
        engine.trigger("acme", RunRequest())
    with pytest.raises(LeaseHeld):
        acquire(deployment.store.control, LeaseOwner.this_process())
    eventually(lambda: outcomes(deployment) == ["completed"])
    eventually(lambda: _is_free(deployment))


def _is_free(deployment: Deployment) -> bool:
    with deployment.store.control.read() as connection:
        return connection.execute(select(schema.tenant.c.lease_owner)).scalar() is None


def test_a_run_past_its_limit_is_timed_out(deployment: Deployment, start: Callable[..., Engine]) -> None:
    """A run past its limit ends with the documented error, whatever the delay of the provider."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=None, delay=60, times=None))
    (result,) = start(tenant_execution_timeout_seconds=2).run_once(["acme"], RunRequest())
    assert (result.outcome, result.errors) == (RunOutcome.TIMED_OUT, ("Execution timed out after 2s",))
    deployment.server.faults.clear()
    eventually(lambda: outcomes(deployment)[-1] == "timed_out")
    (again,) = start().run_once(["acme"], RunRequest())
    assert again.outcome is RunOutcome.COMPLETED


def test_failures_suspend_the_tenant_with_an_alert(
    deployment: Deployment, start: Callable[..., Engine], caplog: pytest.LogCaptureFixture
) -> None:
    """At the threshold, alerts are logged and triggers are refused with the reason; a restart clears the suspension."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=401, times=None))
    engine = start(gather_failure_threshold=2)
    for _ in range(2):
        engine.run_once(["acme"], RunRequest())
    critical = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert critical == [
        "ALERT: Tenant acme has been permanently suspended",
        "ALERT: All 1 tenant(s) have been permanently suspended",
    ]
    with pytest.raises(TenantSuspended, match="gathering failed 2 times in a row"):
        engine.trigger("acme", RunRequest())
    deployment.server.faults.clear()
    restarted = start(gather_failure_threshold=2)
    restarted.start()
    eventually(lambda: outcomes(deployment)[-1] == "completed")


def test_a_worker_refreshes_at_once(deployment: Deployment, start: Callable[..., Engine]) -> None:
    """A worker runs the tenants when it starts."""
    engine = start()
    engine.start()
    eventually(lambda: outcomes(deployment) == ["completed"])
    eventually(lambda: _is_free(deployment))


def test_who_is_told_hears_of_it(deployment: Deployment, start: Callable[..., Engine]) -> None:
    """Messages are sent at the end of a single run, and by a worker soon after the event."""

    def happen(name: str) -> None:
        with deployment.store.control.write() as connection:
            add_events(connection, [Event(SHADOW_READY, f"shadow/{name}", {"days": 30}, name)], deployment.clock())

    with Receiver() as receiver:
        settings = {"type": "webhook", "url": receiver.url, "secrets": [SECRET], "allow_private": True}
        sinks = {"desk": WebhookSettings.model_validate(settings)}
        once = start(notifications=sinks)
        once.run_once(["acme"], RunRequest())
        happen("first")
        once.run_once(["acme"], RunRequest())
        assert len(receiver.received) == 1
        happen("second")
        worker = start(notifications=sinks)
        worker.start()
        labels = {"tenant": "acme", "sink": "desk", "outcome": "delivered"}
        # A delivery is counted a moment after it arrives.
        eventually(lambda: worker.registry.get_sample_value("chargeback_deliveries_total", labels) == 1)
    assert len(receiver.received) == 2


def test_stopping_ends_a_run_between_days(
    deployment: Deployment, start: Callable[..., Engine], caplog: pytest.LogCaptureFixture
) -> None:
    """A stop in the middle of a long wait is quick, the run is recorded as interrupted, and nothing else starts.
    Because the stop was requested, the log has no error."""
    caplog.set_level(logging.INFO)
    deployment.server.faults.add("/billing/v1/costs", Fault(status=429, retry_after=300, times=None))
    engine = start()
    engine.trigger("acme", RunRequest())
    eventually(lambda: deployment.server.faults.hits("/billing/v1/costs") > 0)
    began = time.monotonic()
    engine.stop()
    assert time.monotonic() - began < 10
    assert outcomes(deployment) == ["interrupted"]
    assert "Tenant acme: the run was stopped before its end; the next run continues" in caplog.messages
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    with pytest.raises(NoRunner):
        engine.trigger("acme", RunRequest())


def test_as_many_as_there_are() -> None:
    """A slot is free again once it is returned; without waiting, a request for a taken slot is refused."""
    places = RunSlots(2)
    assert [places.try_take() for _ in range(3)] == [True, True, False]
    places.give_back()
    assert places.take()
    assert places.waiting == 0


def test_whoever_waits_is_counted_and_gets_the_next_one() -> None:
    """A waiting thread is counted, and gets the next free slot."""
    places = RunSlots(1)
    assert places.take()
    got: list[bool] = []
    thread = threading.Thread(target=lambda: got.append(places.take()))
    thread.start()
    eventually(lambda: places.waiting == 1)
    assert not got
    places.give_back()
    thread.join(30)
    assert (got, places.waiting) == ([True], 0)


def test_closed_places_let_everybody_go() -> None:
    """Closing ends all waits for a slot, and no slot is given afterwards."""
    places = RunSlots(0)
    got: list[bool] = []
    thread = threading.Thread(target=lambda: got.append(places.take()))
    thread.start()
    eventually(lambda: places.waiting == 1)
    places.close()
    thread.join(30)
    assert got == [False]
    assert not RunSlots(0).try_take()


def test_a_tenant_that_hangs_keeps_no_other_waiting(caplog: pytest.LogCaptureFixture) -> None:
    """Each tenant gets its turns; a hanging one delays neither the others nor the stop."""
    turns: Counter[str] = Counter()
    release = threading.Event()

    def take_turn(name: str) -> NextTurn | None:
        if name == "hanging":
            release.wait(60)
            return None
        turns[name] += 1
        return NextTurn(0.01, "it is time")

    schedule = Schedule(take_turn)
    schedule.start(["hanging", "healthy"])
    eventually(lambda: turns["healthy"] > 3)
    schedule.stop()
    schedule.join(0.2)
    release.set()
    schedule.join(30)


def test_the_log_says_when_and_why_once(caplog: pytest.LogCaptureFixture) -> None:
    """A turn that is news is one line with the time and the reason; a repetition is not logged."""
    caplog.set_level(logging.INFO)
    turns = iter([NextTurn(0.01, "a reason"), NextTurn(0.01, "a reason", is_news=False), None])
    schedule = Schedule(lambda _: next(turns))
    schedule.start(["acme"])
    schedule.join(30)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("tenant acme: next run at 2")
    assert line.endswith("Z, in 0 s: a reason")


def test_an_error_no_one_expected_ends_no_tenant(caplog: pytest.LogCaptureFixture) -> None:
    """The error is logged with its traceback, and the tenant has its next turn."""
    said = threading.Event()

    def take_turn(name: str) -> NextTurn | None:
        said.set()
        raise ZeroDivisionError

    schedule = Schedule(take_turn)
    schedule.start(["acme"])
    eventually(lambda: "tenant acme: the scheduled run failed" in caplog.text)
    schedule.stop()
    schedule.join(30)
    assert said.is_set()
