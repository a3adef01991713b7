"""Simulations in separate processes: failed ones, and too many of them."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from chargeback.config import Tenant
from chargeback.config.settings import LoggingSettings
from chargeback.errors import EngineBusy, QueryTimeout
from chargeback.model.days import DayRange
from chargeback.pipeline.simulations import Simulations, TenantSimulator
from chargeback.reports.tenant_view import SimulationOrder
from chargeback.store.control.simulations import KeptSimulation, add_simulation, find_simulation
from chargeback.store.tenant import TenantStore
from tests.support.clock import NOW, FixedClock
from tests.support.facts import tenant_store
from tests.support.serving import wait_until
from tests.support.sources import DAY

ORDER = SimulationOrder({}, DayRange(DAY, DAY), ("identity_id",))
#: The simulations here do not use the tenant.
TENANT = cast(Tenant, None)


def dies(*_: object) -> None:
    """End the process as if it were killed."""
    os._exit(3)


def kept(store: TenantStore, number: str) -> KeptSimulation:
    """Return the stored simulation."""
    with store.control.read() as connection:
        found = find_simulation(connection, number, NOW)
    assert found is not None
    return found


def begin(store: TenantStore, simulations: Simulations, number: str, before: Any = lambda: None) -> None:
    """Request a simulation."""
    with store.control.write() as connection:
        add_simulation(connection, number, {}, "ann", NOW)
    TenantSimulator(TENANT, store, simulations).start(number, ORDER, before)


@pytest.mark.usefixtures("process")
def test_one_whose_process_dies_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation is marked as failed, and the next one takes its slot."""
    monkeypatch.setattr("chargeback.pipeline.simulations._child", dies)
    monkeypatch.setattr("chargeback.pipeline.simulations.MOST_RUNNING", 1)
    monkeypatch.setattr("chargeback.pipeline.simulations.MOST_WAITING", 1)
    with tenant_store(tmp_path) as store:
        simulations = Simulations(LoggingSettings(), frozenset(), FixedClock())
        for number in ("one", "two"):
            begin(store, simulations, number)
        for number in ("one", "two"):
            wait_until(lambda number=number: kept(store, number).state == "failed")  # type: ignore[misc]
            assert kept(store, number).error == "the process of the simulation ended unexpectedly"


def test_no_more_wait_than_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, a simulation is refused until another has ended; a request that is too late starts nothing."""
    ends = threading.Event()
    monkeypatch.setattr(Simulations, "_simulate", lambda *_: ends.wait(60))
    monkeypatch.setattr("chargeback.pipeline.simulations.MOST_RUNNING", 1)
    monkeypatch.setattr("chargeback.pipeline.simulations.MOST_WAITING", 1)
    with tenant_store(tmp_path) as store:
        simulations = Simulations(LoggingSettings(), frozenset(), FixedClock())

        def late() -> None:
            raise QueryTimeout("too late")

        with pytest.raises(QueryTimeout):
            begin(store, simulations, "late", late)
        for number in ("one", "two"):
            begin(store, simulations, number)
        with pytest.raises(EngineBusy, match="waiting"):
            begin(store, simulations, "three")
        ends.set()

        def is_taken() -> bool:
            try:
                begin(store, simulations, "four")
            except EngineBusy:
                return False
            return True

        wait_until(is_taken)
