"""Components that hang or are temporarily unavailable: a paused database server, the paused parent of a run, a database
that does not exist yet when the service starts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest
import yaml
from sqlalchemy import select

from chargeback.config import load_configuration
from chargeback.demo.faults import Fault
from chargeback.demo.server import DemoServer
from chargeback.store.control import schema
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.tenant import open_store
from tests.drills.ledger import Ledger, StoredResult, tries
from tests.support.databases import PostgresServer, own_postgres_server
from tests.support.deployments import Deployment
from tests.support.installations import Installation, readiness, runs_ended, serving
from tests.support.processes import command, eventually, free_port
from tests.support.runs import recorded_runs

HANGS = "another tenant's PostgreSQL hangs"
PAUSED = "parent of a run paused by SIGSTOP until its time limit"
AWAY = "PostgreSQL away when the service starts"
HANGING = "hanging"


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server that can be paused and stopped."""
    with own_postgres_server() as running:
        yield running


@tries(0, 3)
def test_a_server_that_hangs_beside_a_healthy_tenant(
    server: DemoServer, postgres: PostgresServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """With one run at a time and many requests for the hanging tenant, the other one is still refreshed and served;
    readiness reports the problem in time; when the server continues, its tenant does, too."""
    for number in range(tries):
        healthy = Deployment.within(server, tmp_path / f"{number}")
        with ledger.drill(HANGS) as drill:
            with serving(_beside_one_on(postgres, healthy, number)) as api:
                eventually(lambda: all(runs_ended(api, name) for name in ("acme", HANGING)), 240)
                postgres.pause()
                try:
                    _the_healthy_one_is_served(api)
                finally:
                    postgres.resume()
                before = runs_ended(api, HANGING)
                eventually(lambda: readiness(api)["status"] == "ready")
                eventually(lambda: runs_ended(api, HANGING) > before)  # noqa: B023
            drill.compare(undisturbed, healthy.store)
        healthy.store.close()


def _the_healthy_one_is_served(api: httpx.Client) -> None:
    before = runs_ended(api, "acme")
    with _pollers(api, f"/api/v1/tenants/{HANGING}/chargebacks", 30):
        for _ in range(3):
            assert _seconds(lambda: api.get("/api/v1/tenants/acme/chargebacks").raise_for_status()) < 10
            assert _seconds(lambda: api.get("/api/v1/tenants").raise_for_status()) < 15
            assert _seconds(lambda: api.get("/metrics").raise_for_status()) < 15
            assert _seconds(lambda: readiness(api)) < 15
        eventually(lambda: readiness(api)["status"] == "error")
        told = {each["tenant_name"]: each for each in readiness(api)["tenants"]}
        assert told["acme"]["storage_error"] is None
        assert told[HANGING]["storage_error"]
        assert told[HANGING]["permanent_failure"] is None
        assert f'chargeback_storage_usable{{tenant="{HANGING}"}} 0' in api.get("/metrics").text
        eventually(lambda: runs_ended(api, "acme") >= before + 2)


def _beside_one_on(postgres: PostgresServer, healthy: Deployment, number: int) -> Path:
    """Write the configuration of a service with both tenants, which refreshes them continuously, one at a time."""
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE try_{number}")
    folder = healthy.config_file.parent
    document = yaml.safe_load(healthy.config_file.read_text())
    neighbour = yaml.safe_load(healthy.config_file.read_text())["tenants"]["acme"]
    neighbour["tenant_id"] = HANGING
    address = postgres.address.removesuffix("/postgres") + f"/try_{number}"
    neighbour["storage"] = {"connection_string": address, "facts_path": str(folder / "hanging.facts")}
    document["tenants"] = {HANGING: neighbour, **document["tenants"]}
    document["features"] = {"refresh_interval": 2, "max_parallel_tenants": 1}
    document["api"]["port"] = free_port()
    file = folder / "both.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


@contextmanager
def _pollers(api: httpx.Client, path: str, count: int) -> Iterator[None]:
    """Run ``count`` clients that request ``path`` repeatedly."""
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            assert httpx.get(f"{api.base_url}{path}", timeout=120).status_code in {200, 503, 504}

    threads = [threading.Thread(target=poll, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    try:
        yield
    finally:
        ended.set()


def _seconds(ask: Callable[[], object]) -> float:
    began = time.monotonic()
    ask()
    return time.monotonic() - began


@tries(0, 3)
def test_a_paused_parent_loses_the_tenant(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """The child enforces the time limit: its run is recorded as timed out, the lease is released, and another process
    takes over while the parent is still paused."""
    for number in range(tries):
        deployment = Deployment.within(server, tmp_path / f"{number}")
        with ledger.drill(PAUSED) as drill:
            server.faults.add("/billing/v1/costs", Fault(status=None, delay=30, times=None))
            parent = command(_limited(deployment, 5), "run")
            try:
                eventually(lambda: _has_child(parent.pid))  # noqa: B023 - called at once
                time.sleep(1)  # until it has its task
                os.kill(parent.pid, signal.SIGSTOP)
                eventually(lambda: [each.outcome for each in recorded_runs(deployment.store)] == ["timed_out"])  # noqa: B023
                eventually(lambda: _holder(deployment) is None)  # noqa: B023
                server.faults.clear()
                assert command(deployment.config_file, "run").wait() == 0
                os.kill(parent.pid, signal.SIGCONT)
                assert parent.wait(60) == 1
            finally:
                parent.kill()
                parent.wait()
            drill.compare(undisturbed, deployment.store)
        deployment.store.close()


def _limited(deployment: Deployment, seconds: int) -> Path:
    """Write a configuration that limits a run of the tenant to ``seconds``."""
    document = yaml.safe_load(deployment.config_file.read_text())
    document["tenants"]["acme"]["tenant_execution_timeout_seconds"] = seconds
    file = deployment.config_file.with_name("limited.yaml")
    file.write_text(yaml.safe_dump(document))
    return file


def _has_child(pid: int) -> bool:
    """Return whether a process has started the child that executes its run."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == pid and "spawn_main" in stat.with_name("cmdline").read_text():
                return True
    return False


def _holder(deployment: Deployment) -> int | None:
    """Return the id of the process that holds the lease."""
    with deployment.store.control.read() as connection:
        owner = LeaseOwner.parse(str(connection.execute(select(schema.tenant.c.lease_owner)).scalar()))
    return None if owner is None else owner.pid


@tries(0, 3)
def test_a_database_that_is_away_at_start(
    server: DemoServer, postgres: PostgresServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """The service starts and reports what is missing; once the server is up, it prepares and runs the tenant."""
    for number in range(tries):
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE away_{number}")
        address = postgres.address.removesuffix("/postgres") + f"/away_{number}"
        folder = tmp_path / f"{number}"
        folder.mkdir()
        installation = Installation(
            folder, server.info, data=folder, connection_string=address, facts_path=folder / "facts"
        )
        postgres.stop("fast")
        with ledger.drill(AWAY) as drill:
            with installation.serving("both") as service:
                assert service.readiness() == "error"
                (told,) = service.client.get("/readiness").json()["tenants"]
                assert (told["tables_ready"], told["permanent_failure"]) == (False, None)
                assert "cannot be used" in told["storage_error"]
                postgres.start()
                eventually(lambda: service.readiness() == "ready")
                eventually(service.is_idle)
            with closing(open_store(load_configuration(installation.config_file).tenants["acme"])) as store:
                drill.compare(undisturbed, store)
