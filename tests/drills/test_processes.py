"""Several processes on one tenant: one run at a time, and a process that has lost the lease writes nothing."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from sqlalchemy import func, select, update

from chargeback.config import load_configuration
from chargeback.demo.app import ServerOptions
from chargeback.demo.faults import Fault
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.days import utc_now
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.store.control import schema
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, SCHEMAS
from chargeback.store.tenant import open_store
from tests.drills.ledger import TODAY, Drill, Ledger, StoredResult, tries
from tests.support.databases import scratch_database
from tests.support.deployments import Deployment
from tests.support.installations import Installation
from tests.support.processes import calculated, command, eventually

SLOW = 0.15


@pytest.fixture
def server(organisation: Organisation) -> Iterator[DemoServer]:
    """Yield the organisation behind a slow provider, so that runs can be disturbed in the middle."""
    with DemoServer(organisation, options=ServerOptions(latency=SLOW)) as running:
        yield running


def everything_stored(deployment: Deployment) -> list[object]:
    """Return what a late writer could change: the version of every table, and every row of the control database."""
    versions = [deployment.store.facts.snapshot(name).version for name in SCHEMAS]
    with deployment.store.control.read() as connection:
        rows = [connection.execute(select(table)).all() for table in schema.metadata.sorted_tables]
    return [versions, rows]


@tries(0, 5)
def test_a_paused_owner_that_wakes_up_writes_nothing(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """A run that was paused and replaced finds that it has lost the lease, and ends."""
    for number in range(tries):
        deployment = Deployment.within(server, tmp_path / f"{number}")
        with ledger.drill("SIGSTOP of a run until another has taken over") as drill:
            _pause_and_replace(deployment)
            drill.compare(undisturbed, deployment.store)
        deployment.store.close()


def _pause_and_replace(deployment: Deployment) -> None:
    paused = command(deployment.config_file, "run")
    eventually(lambda: calculated(deployment.store) >= 1)
    with deployment.store.control.read() as connection:
        owner = LeaseOwner.parse(str(connection.execute(select(schema.tenant.c.lease_owner)).scalar()))
    assert owner is not None
    try:
        with deployment.store.control.write() as connection:
            # A process stopped during a write keeps SQLite's lock, so they are stopped while this test holds it.
            for process in (paused.pid, owner.pid):
                os.kill(process, signal.SIGSTOP)
            connection.execute(update(schema.tenant).values(lease_expires_at=utc_now() - timedelta(seconds=1)))
        assert command(deployment.config_file, "run").wait() == 0
        finished = everything_stored(deployment)
        for process in (owner.pid, paused.pid):
            os.kill(process, signal.SIGCONT)
        assert paused.wait(60) == 1
    except BaseException:
        os.kill(owner.pid, signal.SIGKILL)
        paused.kill()
        paused.wait()
        raise
    assert everything_stored(deployment) == finished


@pytest.mark.drill
def test_a_second_run_is_refused_while_one_is_in_progress(deployment: Deployment) -> None:
    """A second `chargeback run` fails and changes nothing."""
    first = command(deployment.config_file, "run")

    def is_running() -> bool:
        with deployment.store.control.read() as connection:
            return connection.execute(select(func.count()).select_from(schema.runs)).scalar() == 1

    eventually(is_running)
    assert command(deployment.config_file, "run").wait() == 1
    assert first.wait() == 0
    with deployment.store.control.read() as connection:
        assert list(connection.execute(select(schema.runs.c.outcome)).scalars()) == ["completed"]


def _calculated_exactly_once(drill: Drill, folder: Path, *, tenants: int, days: int) -> None:
    """Check that two workers and two APIs on PostgreSQL calculate every day of each tenant once, with the rows of a
    tenant that was calculated alone."""
    organisation = Organisation.generate(DemoSpec(today=TODAY, size="small", days=days))
    with ExitStack() as stack:
        server = stack.enter_context(DemoServer(organisation))
        template = Deployment.within(server, folder)
        assert template.run().outcome is RunOutcome.COMPLETED
        alone = StoredResult.of(template.store)
        template.store.close()
        document = yaml.safe_load(template.config_file.read_text())
        known = document["tenants"].pop("acme")
        for number in range(tenants):
            database = stack.enter_context(scratch_database("postgresql", folder))
            storage = {"connection_string": database, "facts_path": str(folder / f"facts-{number}")}
            document["tenants"][f"t{number}"] = known | {"tenant_id": f"t{number}", "storage": storage}
        configurations = [folder / f"process-{number}.yaml" for number in range(4)]
        for port, file in zip(_free_ports(4), configurations, strict=True):
            file.write_text(yaml.safe_dump(document | {"api": {"port": port}}))
        processes = [
            command(file, "serve", "--mode", mode)
            for file, mode in zip(configurations, ("worker", "worker", "api", "api"), strict=True)
        ]
        stores = [open_store(tenant) for tenant in load_configuration(configurations[0]).tenants.values()]
        for store in stores:
            store.control.upgrade()
            stack.callback(store.close)
        due = len(range(5, days))
        try:
            eventually(lambda: all(calculated(store) == due for store in stores), 600)
        finally:
            for process in processes:
                process.terminate()
            ends = [process.wait(20) for process in processes]
        assert ends == [0, 0, 0, 0]
        for store in stores:
            written = [file.path for file in store.facts.place.files(CHARGEBACKS_TABLE) if "date=" in file.path]
            assert len(written) == due
            drill.compare_shares(alone, store)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@tries(0, 3)
def test_two_workers_and_two_apis_on_one_postgresql(tmp_path: Path, ledger: Ledger, tries: int) -> None:
    """Every day is calculated exactly once, whichever worker is first."""
    for number in range(tries):
        with ledger.drill("two workers and two APIs at once, each day calculated once") as drill:
            _calculated_exactly_once(drill, tmp_path / f"{number}", tenants=3, days=10)


@pytest.mark.drill
@pytest.mark.timeout(900)
def test_ten_tenants_thirty_days(tmp_path: Path, ledger: Ledger) -> None:
    """The same holds with ten tenants and thirty days."""
    with ledger.drill("two workers and two APIs at once, each day calculated once") as drill:
        _calculated_exactly_once(drill, tmp_path / "large", tenants=10, days=30)


@pytest.mark.drill
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_trigger_is_refused_by_every_replica_while_one_runs(server: DemoServer, tmp_path: Path, kind: str) -> None:
    """Of two services on one tenant, either can be triggered; there is one run at a time, and both show it."""
    with scratch_database(kind, tmp_path) as database, ExitStack() as stack:
        replicas = [
            stack.enter_context(
                _replica(server, tmp_path / f"{number}", database, facts=tmp_path / "facts").serving("both")
            )
            for number in range(2)
        ]
        for each in replicas:
            eventually(each.is_idle)
        server.faults.add("/org/v2/environments", Fault(status=None, delay=3))
        wish, status = "/tenants/acme/pipeline/run", "/tenants/acme/pipeline/status"
        assert replicas[0].client.post(wish).status_code == 202
        for each in replicas:
            refusal = each.client.post(wish)
            assert (refusal.status_code, refusal.json()["detail"]) == (
                409,
                "Pipeline is already running for tenant acme",
            )
            assert each.client.get(status).json()["is_running"] is True
        for each in replicas:
            eventually(each.is_idle)
            assert each.client.get(status).json()["last_result"]["errors"] == []


def _replica(server: DemoServer, folder: Path, database: str, *, facts: Path) -> Installation:
    folder.mkdir()
    return Installation(folder, server.info, data=folder, connection_string=database, facts_path=facts)
