"""Runs of the pipeline as in the service, for tests that check the stored result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from chargeback.config import load_configuration
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run import run_tenant
from chargeback.pipeline.run_messages import RunResult, StopSignal
from chargeback.recompute.verify import DayCheck, verify
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, read_day
from chargeback.store.tenant import TenantStore
from tests.support.clock import FixedClock
from tests.support.databases import open_migrated


@dataclass(frozen=True)
class Ran:
    """A finished run of one tenant, and its storage."""

    result: RunResult
    store: TenantStore

    def bill(self, day: date) -> list[dict[str, Any]]:
        """Return the stored billing lines of a day."""
        rows: list[dict[str, Any]] = read_day(self.store.facts, BILLING_TABLE, day).to_pylist()
        return rows

    def chargebacks(self, day: date) -> list[dict[str, Any]]:
        """Return the stored chargeback rows of a day."""
        rows: list[dict[str, Any]] = read_day(self.store.facts, CHARGEBACKS_TABLE, day).to_pylist()
        return rows

    def checks(self) -> list[DayCheck]:
        """Return the comparison of bill and chargebacks for every gathered day."""
        return list(verify(self.store))


@contextmanager
def run_pipeline(file: Path, tenant: str, request: RunRequest = RunRequest()) -> Iterator[Ran]:  # noqa: B008 - frozen
    """Run a tenant of a configuration file once in this process, on the day of the tests."""
    configured = load_configuration(file).tenants[tenant]
    with closing(open_migrated(configured)) as store:
        lease = store.acquire(LeaseOwner.this_process())
        result = run_tenant(
            configured, store, lease, request, stop=StopSignal(), listener=lambda _: None, clock=FixedClock()
        )
        yield Ran(result, store)
