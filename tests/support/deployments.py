"""A small served organisation, and a tenant that runs with it: a class and its fixtures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Self

import pyarrow as pa
import pytest
import yaml

from chargeback.config import Tenant, load_configuration
from chargeback.demo.config import demo_configuration
from chargeback.demo.faults import Fault
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.days import Clock
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run import run_tenant
from chargeback.pipeline.run_messages import Progress, RunOutcome, RunResult, StopSignal
from chargeback.store.control.days import DayState, read_days
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, read_day
from chargeback.store.tenant import TenantStore
from tests.support.clock import TODAY, DayClock
from tests.support.databases import open_migrated
from tests.support.objects import ObjectServer

DAYS = 12
_METRICS = "/prometheus"


@pytest.fixture(scope="session")
def organisation() -> Organisation:
    """A small organisation of a few days, on the day of the tests."""
    return Organisation.generate(DemoSpec(today=TODAY, size="small", days=DAYS))


@pytest.fixture
def server(organisation: Organisation) -> Iterator[DemoServer]:
    """The organisation, served for one test."""
    with DemoServer(organisation) as running:
        yield running


class Deployment:
    """A configured tenant with its own storage; runs are in this process unless a test starts others.

    Runs in this process use ``clock``: the day of the organisation.
    """

    def __init__(self, server: DemoServer, folder: Path) -> None:
        self.server = server
        self.clock: Clock = DayClock(server.organisation.spec.today)
        self.config_file = folder / "chargeback.yaml"
        self.config_file.write_text(demo_configuration(server.info, folder))
        self.tenant: Tenant
        self.store: TenantStore
        self._open()
        self.progress: list[Progress] = []

    def _open(self) -> None:
        self.tenant = load_configuration(self.config_file).tenants["acme"]
        self.store = open_migrated(self.tenant)

    def reopen(self) -> None:
        """Load the changed configuration file, which may specify another storage."""
        self.store.close()
        self._open()

    def store_in(self, connection_string: str, server: ObjectServer | None = None) -> None:
        """Use a PostgreSQL database from now on, and a new location in an object store, or else a new folder, for the
        facts."""
        written = yaml.safe_load(self.config_file.read_text())
        storage: dict[str, object] = {"connection_string": connection_string, "facts_path": "new.facts"}
        if server is not None:
            storage |= {"facts_path": str(server.location()), "object_store": server.written}
            written["features"] = {**(written.get("features") or {}), "cache": {"path": "copies"}}
        written["tenants"]["acme"]["storage"] = storage
        self.config_file.write_text(yaml.safe_dump(written))
        self.reopen()

    @classmethod
    def within(cls, server: DemoServer, folder: Path) -> Self:
        """Create a deployment in a folder."""
        folder.mkdir()
        return cls(server, folder)

    @classmethod
    def calculated_once(cls, organisation: Organisation, folder: Path) -> Path:
        """Run once in a folder, which calculates everything, and return the folder, for tests to copy."""
        with DemoServer(organisation) as server:
            deployment = cls(server, folder)
            assert deployment.run().outcome is RunOutcome.COMPLETED
            deployment.store.close()
        return folder

    @classmethod
    def copied(cls, prepared: Path, server: DemoServer, folder: Path) -> Self:
        """Return a deployment with a copy of the data in the folder ``prepared``."""
        shutil.copytree(prepared, folder, dirs_exist_ok=True)
        return cls(server, folder)

    def lose_metrics(self) -> None:
        """Make queries of the metrics fail from now on, with an error that is not retried."""
        self.server.faults.add(_METRICS, Fault(status=403, times=None))

    def have_metrics(self) -> None:
        """Make queries of the metrics succeed again."""
        self.server.faults.clear()

    def configure(self, **settings: object) -> None:
        """Change settings of the tenant for the following runs."""
        self.tenant = replace(self.tenant, settings=self.tenant.settings.model_copy(update=settings))

    def run(
        self,
        request: RunRequest | None = None,
        *,
        stop: StopSignal | None = None,
        listener: Callable[[Progress], None] | None = None,
    ) -> RunResult:
        """Run once in this process."""
        lease = self.store.acquire(LeaseOwner.this_process())
        return run_tenant(
            self.tenant,
            self.store,
            lease,
            request or RunRequest(),
            stop=stop or StopSignal(),
            listener=listener or self.progress.append,
            clock=self.clock,
        )

    def states(self) -> list[DayState]:
        """Return the state of every day."""
        with self.store.control.read() as connection:
            return read_days(connection)

    def state(self, day: date) -> DayState:
        """Return the state of one day."""
        return next(state for state in self.states() if state.tracking_date == day)

    def rows(self, day: date) -> pa.Table:
        """Return the chargeback rows of one day."""
        return read_day(self.store.facts, CHARGEBACKS_TABLE, day)

    def all_rows(self) -> pa.Table:
        """Return the chargeback rows of all days."""
        return pa.concat_tables([self.rows(state.tracking_date) for state in self.states()])


@pytest.fixture
def deployment(server: DemoServer, tmp_path: Path) -> Iterator[Deployment]:
    """A tenant that never ran."""
    deployment = Deployment(server, tmp_path)
    yield deployment
    deployment.store.close()


@pytest.fixture(scope="session")
def prepared(organisation: Organisation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tenant whose first run has calculated everything; copy it without changing it."""
    return Deployment.calculated_once(organisation, tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def calculated(prepared: Path, server: DemoServer, tmp_path: Path) -> Iterator[Deployment]:
    """A tenant whose first run has calculated everything, topics included."""
    deployment = Deployment.copied(prepared, server, tmp_path)
    yield deployment
    deployment.store.close()
