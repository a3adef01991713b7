"""SIGKILL of the processes that take part while Dask calculates days: no row is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import yaml

from chargeback.demo.server import DemoServer
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from tests.drills.ledger import Ledger, StoredResult, tries
from tests.support.dask_cluster import dask_cluster
from tests.support.deployments import Deployment
from tests.support.processes import command, eventually


@tries(0, 2)
def test_a_worker_is_killed(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """The other worker calculates its days, and the same run completes."""
    for number in range(tries):
        folder = tmp_path / str(number)
        with (
            ledger.drill("a Dask worker killed while days are calculated") as drill,
            dask_cluster(folder, workers=2) as cluster,
            _calculating(server, folder / "tenant", cluster.document) as (deployment, run),
        ):
            _kill(cluster.workers[0])
            assert run.wait(600) == 0
            drill.compare(undisturbed, deployment.store)


@tries(0, 2)
def test_the_scheduler_is_killed(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """The run fails with an error; with another scheduler, the next run calculates the missing days."""
    for number in range(tries):
        folder = tmp_path / str(number)
        with ledger.drill("the Dask scheduler killed while days are calculated") as drill:
            with (
                dask_cluster(folder, workers=2) as cluster,
                _calculating(server, folder / "tenant", cluster.document) as (deployment, run),
            ):
                _kill(cluster.scheduler)
                assert run.wait(600) != 0
            with dask_cluster(folder, workers=2) as cluster:
                _compute_with(deployment, cluster.document)
                assert command(deployment.config_file, "run").wait(600) == 0
                drill.compare(undisturbed, deployment.store)


@tries(0, 2)
def test_the_run_is_killed(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """Workers stop with the run; no table has their files, and the next run calculates their days."""
    for number in range(tries):
        with (
            ledger.drill("a run killed while Dask workers calculate its days") as drill,
            _calculating(server, tmp_path / str(number), {"type": "dask", "workers": 2}) as (deployment, run),
        ):
            _kill(run)
            eventually(lambda: command(deployment.config_file, "run").wait() == 0, 600)
            drill.compare(undisturbed, deployment.store)


@contextmanager
def _calculating(
    server: DemoServer, folder: Path, compute: dict[str, Any]
) -> Iterator[tuple[Deployment, Popen[bytes]]]:
    """Yield a tenant and a run whose workers have just written the first file of a day's rows."""
    deployment = Deployment.within(server, folder)
    _compute_with(deployment, compute)
    run = command(deployment.config_file, "run")
    place = deployment.store.facts.place
    try:
        eventually(lambda: any("date=" in file.path for file in place.files(CHARGEBACKS_TABLE)))
        assert run.poll() is None
        yield deployment, run
    finally:
        _kill(run)
        deployment.store.close()


def _compute_with(deployment: Deployment, compute: dict[str, Any]) -> None:
    document = yaml.safe_load(deployment.config_file.read_text())
    features = document.get("features", {}) | {"compute": compute}
    deployment.config_file.write_text(yaml.safe_dump(document | {"features": features}))


def _kill(process: Popen[bytes]) -> None:
    process.kill()
    process.wait()
