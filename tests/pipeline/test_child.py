"""A run as a child process, which depends on its parent only to be stopped."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from chargeback.config import load_configuration
from chargeback.config.settings import LoggingSettings
from chargeback.demo.faults import Fault
from chargeback.model.run_request import RunRequest
from chargeback.pipeline import child, child_process
from chargeback.pipeline.child import ChildProcesses, RunningChild
from chargeback.pipeline.child_process import Messenger
from chargeback.pipeline.executor import RunAssignment
from chargeback.pipeline.run_messages import Progress, RunOutcome, RunResult, RunStats, Stage, StopReason
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.control.runs import ask_to_end, read_log
from tests.support.clock import TODAY
from tests.support.deployments import Deployment
from tests.support.runs import Recorded, recorded_runs

# Runs need processes.
pytestmark = pytest.mark.usefixtures("process")


def progress(rows: int) -> Progress:
    """Return a progress message of a run."""
    return Progress("acme", Stage.CALCULATING, TODAY, rows, rows, RunStats(chargeback_rows_written=rows))


def test_a_parent_that_reads_nothing_holds_nobody_up() -> None:
    """More progress than a pipe holds does not block the child; the latest progress and the result arrive when the
    parent reads again."""
    mine, theirs = multiprocessing.Pipe()
    messenger = Messenger(theirs)
    began = time.monotonic()
    for rows in range(20_000):
        messenger.show(progress(rows))
    assert time.monotonic() - began < 30
    messenger.finish(RunResult("acme", RunOutcome.COMPLETED, lines=7), 0.01)
    messages: list[Any] = []
    while not (messages and isinstance(messages[-1], RunResult)):
        messages.append(mine.recv())
    assert messages[-2] == progress(19_999)
    assert messages[-1].lines == 7


def test_a_parent_that_is_gone_is_no_error() -> None:
    """Messages to a dead parent are dropped, and the child ends normally."""
    mine, theirs = multiprocessing.Pipe()
    mine.close()
    messenger = Messenger(theirs)
    messenger.show(progress(1))
    messenger.finish(RunResult("acme", RunOutcome.COMPLETED), 30)


def processes_of_runs() -> list[BaseProcess]:
    """Return the running processes of runs; other tests may have other processes."""
    return [each for each in multiprocessing.active_children() if each.name == "chargeback run"]


@pytest.fixture
def children() -> Iterator[ChildProcesses]:
    """Yield an executor; afterwards its processes have ended."""
    executor = ChildProcesses()
    yield executor
    executor.close()
    assert processes_of_runs() == []


def started(deployment: Deployment, executor: ChildProcesses | None = None, *, epochs_ago: int = 0) -> RunningChild:
    """Start a run of the tenant under its lease, or under an earlier one."""
    lease = acquire(deployment.store.control, LeaseOwner.this_process())
    assignment = RunAssignment(
        deployment.tenant, RunRequest(), lease.epoch - epochs_ago, LoggingSettings(), deployment.clock
    )
    return (executor or ChildProcesses()).start(assignment)


def process_of_a_run(deployment: Deployment, executor: ChildProcesses) -> BaseProcess:
    """Run the tenant to completion; return the process of the run."""
    running = started(deployment, executor)
    (process,) = processes_of_runs()
    result = running.wait(lambda _: None)
    assert (result.outcome, result.errors) == (RunOutcome.COMPLETED, ())
    return process


def test_a_child_does_the_run_and_tells_of_it(deployment: Deployment) -> None:
    """The parent gets the progress and the result; the run is recorded, and the lease is free."""
    heard: list[Progress] = []
    result = started(deployment).wait(heard.append)
    assert (result.outcome, result.errors) == (RunOutcome.COMPLETED, ())
    assert heard[-1].rows == result.chargeback_rows_written == deployment.all_rows().num_rows > 0
    assert recorded_runs(deployment.store) == [Recorded("completed", ())]
    acquire(deployment.store.control, LeaseOwner.this_process())


def test_a_child_masks_the_secrets_of_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child knows the secrets of the tenants that it runs, and of no others. Those of earlier runs remain masked: a
    thread that a plugin left behind may still log them."""
    masked: list[frozenset[str]] = []
    monkeypatch.setattr(child_process, "configure_logging", lambda _settings, secrets, _about: masked.append(secrets))
    monkeypatch.setattr(child_process, "_run", lambda given, *_: RunResult(given.tenant.name, RunOutcome.COMPLETED))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    cloud = "{{ecosystem: confluent_cloud, tenant_id: {0}, storage: {{connection_string: 'sqlite:///{0}.db'}}, "
    cloud += "plugin_settings: {{ccloud_api: {{key: K, secret: secret-of-{0}}}}}}}"
    file = tmp_path / "chargeback.yaml"
    file.write_text("tenants:\n" + "".join(f"  {name}: {cloud.format(name)}\n" for name in "abc"), encoding="utf-8")
    tenants = load_configuration(file).tenants
    mine, theirs = multiprocessing.Pipe()
    for name in "ab":
        mine.send(RunAssignment(tenants[name], RunRequest(), 1, LoggingSettings()))

    def _read() -> None:
        results = 0
        while results < 2:
            results += isinstance(mine.recv(), RunResult)
        mine.close()

    threading.Thread(target=_read, daemon=True).start()
    collections: list[tuple[int, int, int]] = []
    monkeypatch.setattr(gc, "set_threshold", lambda *each: collections.append(each))
    child_process.child_main(theirs, (50_000, 20, 10))
    assert collections == [(50_000, 20, 10)]  # as rarely as its parent
    first, second = masked
    assert first == tenants["a"].secrets() >= {"secret-of-a"}
    assert second == first | tenants["b"].secrets() >= {"secret-of-a", "secret-of-b"}


def test_a_child_that_dies_is_a_failed_run(deployment: Deployment) -> None:
    """If the process dies, the run has failed with its exit code, and the parent does not wait longer."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=None, delay=60, times=None))
    running = started(deployment)
    (process,) = processes_of_runs()
    process.kill()
    result = running.wait(lambda _: None)
    assert result.outcome is RunOutcome.FAILED
    assert result.errors == ("the process of the run ended unexpectedly (exit code -9)",)
    assert processes_of_runs() == []


def test_a_child_ends_at_the_next_safe_place(deployment: Deployment) -> None:
    """A run that is stopped records that itself; only the first reason counts."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=429, retry_after=300, times=None))
    running = started(deployment)

    def stop(_: Progress) -> None:
        running.stop(StopReason(RunOutcome.INTERRUPTED, "the worker is going down"))
        running.stop()

    result = running.wait(stop)
    assert (result.outcome, result.errors) == (RunOutcome.INTERRUPTED, ("the worker is going down",))
    assert recorded_runs(deployment.store) == [Recorded("interrupted", ("the worker is going down",))]


def test_a_cancelled_child_ends_whatever_process_asks(deployment: Deployment) -> None:
    """A run that is cancelled in the control database ends as cancelled, and its log is recorded."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=429, retry_after=300, times=None))
    running = started(deployment)

    def cancel(_: Progress) -> None:
        with deployment.store.control.write() as connection:
            ask_to_end(connection, 1, "alice")

    result = running.wait(cancel)
    assert (result.outcome, result.errors) == (RunOutcome.CANCELLED, ("alice has cancelled the run",))
    assert recorded_runs(deployment.store) == [Recorded("cancelled", ("alice has cancelled the run",))]
    with deployment.store.control.read() as connection:
        lines, total = read_log(connection, 1, offset=0, limit=10)
    assert total == len(lines) >= 2
    assert lines[0].message.startswith("Gathering")
    assert lines[-1].message == "The run has ended: cancelled."


def test_a_child_whose_lease_was_taken_over_writes_nothing(deployment: Deployment) -> None:
    """The run fails before it starts, and leaves no record."""
    result = started(deployment, epochs_ago=1).wait(lambda _: None)
    assert result.outcome is RunOutcome.FAILED
    assert "lease" in result.errors[0]
    assert recorded_runs(deployment.store) == []
    assert not list(deployment.store.facts.place.files())


def test_a_child_that_found_nothing_executes_the_next_run(deployment: Deployment, children: ChildProcesses) -> None:
    """A run that calculated something ends its process; otherwise the process executes the next run, which has its own
    record and log. A stop request for the finished run has no effect."""
    calculating = process_of_a_run(deployment, children)
    assert calculating.exitcode == 0
    first = started(deployment, children)
    (idle,) = processes_of_runs()
    assert first.wait(lambda _: None).dates_calculated == 0
    first.stop()
    assert process_of_a_run(deployment, children) is idle is not calculating
    assert recorded_runs(deployment.store) == [Recorded("completed", ())] * 3
    acquire(deployment.store.control, LeaseOwner.this_process())


def test_an_idle_child_that_is_gone_is_replaced(deployment: Deployment, children: ChildProcesses) -> None:
    """An idle process that was stopped or has ended does not affect the next run."""
    process_of_a_run(deployment, children)
    idle = process_of_a_run(deployment, children)
    idle.terminate()
    idle.join(30)
    assert idle.exitcode == 0
    assert process_of_a_run(deployment, children) is not idle


@pytest.mark.drill
def test_an_idle_child_that_does_not_respond_is_replaced(
    deployment: Deployment, children: ChildProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused process is killed, and another one executes the run."""
    monkeypatch.setattr(child, "_BEGIN_SECONDS", 0.1)
    process_of_a_run(deployment, children)
    idle = process_of_a_run(deployment, children)
    assert idle.pid is not None
    os.kill(idle.pid, signal.SIGSTOP)
    running = started(deployment, children)
    assert running.wait(lambda _: None).outcome is RunOutcome.COMPLETED
    assert idle.exitcode == -signal.SIGKILL


@pytest.mark.drill
def test_a_child_executes_a_limited_number_of_runs(
    deployment: Deployment, children: ChildProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a limited number of runs a process is replaced, so that leftovers of plugins do not accumulate."""
    monkeypatch.setattr(child, "_MAX_RUNS", 2)
    process_of_a_run(deployment, children)
    processes = [process_of_a_run(deployment, children) for _ in range(3)]
    assert processes[0] is processes[1] is not processes[2]
    assert processes[1].exitcode == 0
