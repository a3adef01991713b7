"""A PostgreSQL server that stops, or cuts connections, in the middle of a run: nothing is lost, and no process is
restarted."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from chargeback.config import load_configuration
from chargeback.demo.app import ServerOptions
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.store.tenant import TenantStore, open_store
from tests.drills.ledger import Drill, Ledger, StoredResult, tries
from tests.support.databases import PostgresServer, own_postgres_server, scratch_database
from tests.support.installations import Installation, Service
from tests.support.processes import eventually

STOPPED = "PostgreSQL stopped in the middle of a run, started again"
CUT = "PostgreSQL connections cut in the middle of transactions"
SLOW = 0.15

#: Every backend of the database except that of this query.
_CUT_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
def server(organisation: Organisation) -> Iterator[DemoServer]:
    """Yield the organisation behind a slow provider, so that runs can be disturbed in the middle."""
    with DemoServer(organisation, options=ServerOptions(latency=SLOW)) as running:
        yield running


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server that can be stopped and started."""
    with own_postgres_server() as running:
        yield running


def _installed(server: DemoServer, folder: Path, database: str) -> Installation:
    folder.mkdir()
    return Installation(folder, server.info, data=folder, connection_string=database, facts_path=folder / "facts")


@contextmanager
def _storage(installation: Installation) -> Iterator[TenantStore]:
    with closing(open_store(load_configuration(installation.config_file).tenants["acme"])) as store:
        yield store


@tries(1, 3)
@pytest.mark.parametrize("mode", ["fast", pytest.param("immediate", marks=pytest.mark.drill)])
def test_a_server_that_stops_and_comes_back(
    server: DemoServer,
    postgres: PostgresServer,
    tmp_path: Path,
    undisturbed: StoredResult,
    ledger: Ledger,
    mode: str,
    tries: int,
) -> None:
    """While the server is down, the API reports it in time; then the same process responds and completes the work."""
    for number in range(tries):
        database = f"try_{number}"
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}")
        address = postgres.address.removesuffix("/postgres") + f"/{database}"
        installation = _installed(server, tmp_path / f"{number}", address)
        with ledger.drill(STOPPED) as drill, installation.serving("both") as service:
            eventually(lambda: service.calculated() >= 1)
            postgres.stop(mode)
            _assert_away(service)
            postgres.start()
            _complete(service, installation, drill, undisturbed)


def _assert_away(service: Service) -> None:
    """Check that every request, to read or to write, gets a 503 with the reason, and no unexpected error."""
    asked = [
        service.client.get("/tenants/acme/status"),
        service.client.get("/tenants/acme/chargebacks"),
        service.client.post("/tenants/acme/export"),
        service.tag("anything", "team"),
        service.client.post("/tenants/acme/pipeline/run"),
    ]
    for answer in asked:
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:chargeback:storage-unavailable"
    assert service.readiness() == "error"
    assert service.is_alive()


def _complete(service: Service, installation: Installation, drill: Drill, undisturbed: StoredResult) -> None:
    assert service.reads() == {200}
    eventually(lambda: service.readiness() == "ready")
    service.run()
    with _storage(installation) as store:
        drill.compare(undisturbed, store)


@tries(0, 4)
def test_connections_that_are_cut(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """Runs whose connections are cut repeatedly may fail; one more undisturbed run leaves no row lost or doubled."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(tries):
        folder = tmp_path / f"{number}"
        with scratch_database("postgresql", tmp_path) as database, ledger.drill(CUT) as drill:
            installation = _installed(server, folder, database)
            codes = []
            for _ in range(2):
                with _cutting(database, chance):
                    codes.append(installation.run()[0])
            assert set(codes) <= {0, 1}
            print(f"the runs ended with {codes}")
            assert installation.run()[0] == 0
            with _storage(installation) as store:
                drill.compare(undisturbed, store)


@contextmanager
def _cutting(database: str, chance: random.Random) -> Iterator[None]:
    """Cut every connection of a database, a few times a second, during the ``with`` block."""
    ended = threading.Event()

    def cut() -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            while not ended.wait(chance.uniform(0.1, 1)):
                connection.execute(_CUT_ALL)

    thread = threading.Thread(target=cut, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
