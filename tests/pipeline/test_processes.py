"""Several processes on one tenant: one run at a time, and whoever lost the lease writes nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from sqlalchemy import func, select, update

from chargeback.config import load_configuration
from chargeback.demo.app import ServerOptions
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.days import utc_now, utc_today
from chargeback.pipeline.verify import verify
from chargeback.store.control import schema
from chargeback.store.control.days import read_days
from chargeback.store.control.lease import Owner
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, SCHEMAS
from chargeback.store.tenant import TenantStore, open_store
from tests.pipeline.conftest import Deployment
from tests.support.databases import scratch_database

SLOW = 0.15


@pytest.fixture
def server(organisation: Organisation) -> Iterator[DemoServer]:
    """The organisation behind a provider that takes its time, so that runs can be met in the middle."""
    with DemoServer(organisation, options=ServerOptions(latency=SLOW)) as running:
        yield running


def eventually(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def calculated(store: TenantStore) -> int:
    """How many days are done."""
    with store.control.read() as connection:
        return sum(state.chargeback_calculated for state in read_days(connection))


def command(config: Path, *words: str) -> subprocess.Popen[bytes]:
    """A ``chargeback`` process."""
    return subprocess.Popen(
        [sys.executable, "-m", "chargeback", *words, "--config", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def everything_stored(deployment: Deployment) -> list[object]:
    """What a late writer could change: the version of every table, and every row of control."""
    versions = [deployment.store.facts.snapshot(name).version for name in SCHEMAS]
    with deployment.store.control.read() as connection:
        rows = [connection.execute(select(table)).all() for table in schema.metadata.sorted_tables]
    return [versions, rows]


def test_a_paused_owner_that_wakes_up_writes_nothing(deployment: Deployment) -> None:
    """A run that was stopped in its tracks, and replaced, finds that it has lost the lease and ends."""
    paused = command(deployment.config_file, "run")
    eventually(lambda: calculated(deployment.store) >= 1)
    with deployment.store.control.read() as connection:
        owner = Owner.parse(str(connection.execute(select(schema.tenant.c.lease_owner)).scalar()))
    assert owner is not None
    for process in (paused.pid, owner.pid):
        os.kill(process, signal.SIGSTOP)
    with deployment.store.control.write() as connection:
        connection.execute(update(schema.tenant).values(lease_expires_at=utc_now() - timedelta(seconds=1)))
    assert command(deployment.config_file, "run").wait() == 0
    finished = everything_stored(deployment)
    for process in (owner.pid, paused.pid):
        os.kill(process, signal.SIGCONT)
    assert paused.wait(60) == 1
    assert everything_stored(deployment) == finished
    assert not [check for check in verify(deployment.store) if check.difference]


def test_a_second_run_is_refused_while_one_is_in_progress(deployment: Deployment) -> None:
    """`chargeback run` beside another says so and touches nothing."""
    first = command(deployment.config_file, "run")

    def is_running() -> bool:
        with deployment.store.control.read() as connection:
            return connection.execute(select(func.count()).select_from(schema.runs)).scalar() == 1

    eventually(is_running)
    assert command(deployment.config_file, "run").wait() == 1
    assert first.wait() == 0
    with deployment.store.control.read() as connection:
        assert list(connection.execute(select(schema.runs.c.outcome)).scalars()) == ["completed"]


def _calculated_exactly_once(folder: Path, *, tenants: int, days: int) -> None:
    """Two workers and two APIs share tenants on PostgreSQL: every day of each is calculated once and adds up."""
    organisation = Organisation.generate(DemoSpec(today=utc_today(), size="small", days=days))
    with ExitStack() as stack:
        server = stack.enter_context(DemoServer(organisation))
        template = Deployment(server, folder)
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
            assert store.facts.snapshot(CHARGEBACKS_TABLE).version == due
            assert not [check for check in verify(store) if check.difference]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def test_two_workers_and_two_apis_on_one_postgresql(tmp_path: Path) -> None:
    """Everything is calculated exactly once, whoever comes first."""
    _calculated_exactly_once(tmp_path, tenants=3, days=10)


@pytest.mark.drill
def test_ten_tenants_thirty_days(tmp_path: Path) -> None:
    """The same with ten tenants and thirty days."""
    _calculated_exactly_once(tmp_path, tenants=10, days=30)
