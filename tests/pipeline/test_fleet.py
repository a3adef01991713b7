"""Days calculated by other processes give the same files, even if these processes fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from chargeback.config.compute import ComputeSettings
from chargeback.errors import WorkersUnavailable
from chargeback.model.run_request import RunRequest
from chargeback.pipeline import day_task, fleet
from chargeback.pipeline.run import run_tenant
from chargeback.pipeline.run_messages import Progress, RunOutcome, RunResult, Stage, StopSignal
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.facts.files import content_key
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, DIMENSIONS_TABLE, SCHEMAS, FactTables
from tests.support.dask_cluster import Cluster, certificates, dask_cluster
from tests.support.objects import new_bucket
from tests.support.processes import eventually, free_port
from tests.support.sources import DAY, Laboratory, line

pytestmark = pytest.mark.usefixtures("process")

DAYS = [DAY - timedelta(days=number) for number in range(6)]


def laboratory(folder: Path) -> Laboratory:
    """Return a tenant with some days, and new identities on each."""
    opened = Laboratory(folder, days=len(DAYS))
    opened.sources.lines = {day: [line("100", day=day), line("7", day=day, product="KAFKA_BASE")] for day in DAYS}
    opened.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-unlisted"): 10}}
    return opened


def run(
    tenant: Laboratory, compute: ComputeSettings, listener: Callable[[Progress], None] = lambda _: None
) -> RunResult:
    """Run once with these compute settings."""
    lease = acquire(tenant.store.control, LeaseOwner.this_process())
    return run_tenant(
        *(tenant.tenant, tenant.store, lease, RunRequest()),
        stop=StopSignal(),
        listener=listener,
        clock=tenant.clock,
        compute=compute,
    )


def stored(tenant: Laboratory) -> list[str]:
    """Return the digests of all present files of days."""
    return sorted(
        f"{name} {file.day} {content_key(file.path)}"
        for name in SCHEMAS
        if name != DIMENSIONS_TABLE
        for file in tenant.store.facts.snapshot(name).files
    )


@pytest.fixture
def alone(tmp_path: Path) -> list[str]:
    """Return the files of a tenant whose days were calculated in the process of the run."""
    with laboratory(tmp_path / "alone") as tenant:
        assert tenant.run().errors == ()
        return stored(tenant)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster with one worker."""
    with dask_cluster(tmp_path_factory.mktemp("cluster"), workers=1) as running:
        yield running


def test_workers_of_this_machine_write_the_same_files(tmp_path: Path, alone: list[str]) -> None:
    """Two local processes write the files of one process, each day once, and report the progress of every day."""
    heard: list[Progress] = []
    with laboratory(tmp_path / "dask") as tenant:
        result = run(tenant, ComputeSettings(type="dask", workers=2), heard.append)
        assert (result.errors, result.dates_calculated) == ((), len(DAYS))
        assert stored(tenant) == alone
    done = [each.done for each in heard if each.stage is Stage.CALCULATING]
    assert done == sorted(done)
    assert done[-1] == len(DAYS)


def test_workers_write_into_a_bucket(tmp_path: Path, cluster: Cluster, alone: list[str]) -> None:
    """A worker that shares only object storage with the run writes the same files there."""
    with laboratory(tmp_path / "dask") as tenant:
        tenant.store = replace(tenant.store, facts=FactTables(new_bucket(tmp_path), tenant.store.control))
        assert run(tenant, cluster.settings).errors == ()
        assert stored(tenant) == alone


def test_a_cluster_is_reached_with_certificates_and_equal_versions_only(
    tmp_path: Path, cluster: Cluster, alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run uses a remote scheduler; unknown certificates, and workers of another version, are refused."""
    with laboratory(tmp_path / "dask") as tenant:
        assert run(tenant, cluster.settings).errors == ()
        assert stored(tenant) == alone
    monkeypatch.setitem(day_task.versions(), "chargeback", "0.0.1")
    different = r"chargeback \S+ instead of 0\.0\.1; use the same image everywhere"
    with pytest.raises(WorkersUnavailable, match=different), fleet.connect(cluster.settings):
        pass
    monkeypatch.undo()
    stranger = {"type": "dask", "address": cluster.settings.address, **certificates(tmp_path / "stranger")}
    monkeypatch.setattr(fleet, "_CONNECT_SECONDS", 5)
    with (
        pytest.raises(WorkersUnavailable, match="cannot be used"),
        fleet.connect(ComputeSettings.model_validate(stranger)),
    ):
        pass


def test_files_that_are_written_elsewhere_are_not_committed(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker with another folder than the run fails the run before its file is committed."""
    with laboratory(tmp_path / "dask") as tenant, laboratory(tmp_path / "elsewhere") as elsewhere:
        elsewhere.run()
        submit = fleet.DaskFleet.submit

        def submit_elsewhere(self: fleet.DaskFleet, task: day_task.DayTask) -> object:
            return submit(self, day_task.DayTask(elsewhere.store.facts.place, task.catalogue, task.evidence))

        monkeypatch.setattr(fleet.DaskFleet, "submit", submit_elsewhere)
        result = run(tenant, cluster.settings)
        assert result.outcome is RunOutcome.FAILED
        assert "mount the same storage at the same path on all workers" in result.errors[0]
        assert tenant.store.facts.snapshot(CHARGEBACKS_TABLE).rows == 0


def test_a_scheduler_that_is_not_there_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the address; gathered days stay, and the next run calculates them."""
    monkeypatch.setattr(fleet, "_CONNECT_SECONDS", 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    with laboratory(tmp_path) as tenant:
        result = run(tenant, ComputeSettings(type="dask", address=address))
        assert result.outcome is RunOutcome.FAILED
        assert f"the Dask cluster {address} cannot be used" in result.errors[0]
        assert tenant.run().dates_calculated == len(DAYS)


class _After:
    """Calls a function once, when a number of days is calculated."""

    def __init__(self, days: int, work: Callable[[], None]) -> None:
        self._days = days
        self._work: Callable[[], None] | None = work

    def __call__(self, progress: Progress) -> None:
        if self._work is not None and progress.stage is Stage.CALCULATING and progress.done >= self._days:
            self._work()
            self._work = None


@pytest.mark.drill
def test_a_worker_is_killed(tmp_path: Path, alone: list[str]) -> None:
    """After SIGKILL of a worker, the other one calculates its days, and each day is stored once."""
    with dask_cluster(tmp_path / "cluster", workers=2) as cluster, laboratory(tmp_path / "dask") as tenant:
        kill = _After(len(DAYS) // 3, lambda: os.kill(cluster.workers[0].pid, signal.SIGKILL))
        result = run(tenant, cluster.settings, kill)
        assert (result.errors, result.dates_calculated) == ((), len(DAYS))
        assert stored(tenant) == alone
        assert cluster.workers[0].wait() == -signal.SIGKILL


@pytest.mark.drill
def test_the_scheduler_is_killed(tmp_path: Path, alone: list[str]) -> None:
    """After SIGKILL of the scheduler, the run fails with the reason, and the next one gives the same files."""
    with dask_cluster(tmp_path / "cluster", workers=1) as cluster, laboratory(tmp_path / "dask") as tenant:
        result = run(tenant, cluster.settings, _After(len(DAYS) // 3, cluster.scheduler.kill))
        assert result.outcome is RunOutcome.FAILED
        assert result.dates_calculated > 0
        assert "the Dask cluster" in result.errors[0]
        assert tenant.run().errors == ()
        assert stored(tenant) == alone


@pytest.mark.drill
def test_a_day_that_is_sent_to_nobody_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client accepts days while it reconnects to a lost scheduler, but they are never calculated."""
    monkeypatch.setattr(fleet, "_CONNECT_SECONDS", 5)
    task = cast(day_task.DayTask, "never calculated")
    with dask_cluster(tmp_path / "cluster", workers=1) as cluster, fleet.connect(cluster.settings) as client:
        calculating = fleet.DaskFleet(client, "the cluster")
        cluster.scheduler.kill()
        eventually(lambda: client.status == "connecting")
        sent = calculating.submit(task)
        with pytest.raises(WorkersUnavailable, match="the cluster cannot be used"):
            eventually(lambda: sent.wait(0.1), 10)
