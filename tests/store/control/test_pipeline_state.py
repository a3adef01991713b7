"""What the control database says about runs, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.control.runs import PipelineState, finish_run, pipeline_state, start_run, suspend
from tests.support.databases import KINDS, control_database


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlDatabase]:
    """A migrated, empty control database."""
    with control_database(request.param, tmp_path) as database:
        yield database


def _state(database: ControlDatabase) -> PipelineState:
    with database.read() as connection:
        return pipeline_state(connection)


def test_a_new_tenant_never_ran(database: ControlDatabase) -> None:
    """Nothing runs, nothing ran."""
    assert _state(database) == PipelineState(False, None, None, None, None, None, None)


def test_a_run_from_its_start_to_its_end(database: ControlDatabase) -> None:
    """While the lease is held a run is in progress, with its stage; then its result stays."""
    lease = acquire(database, LeaseOwner.this_process())
    with lease.write() as connection:
        number = start_run(connection, lease.epoch)
    lease.show("calculating", date(2026, 1, 2))
    state = _state(database)
    assert (state.is_running, state.stage, state.stage_date) == (True, "calculating", date(2026, 1, 2))
    assert state.last_outcome == "running"
    assert state.last_at is not None
    with lease.write() as connection:
        finish_run(connection, number, outcome="completed", errors=[], counts={"dates_calculated": 3})
    lease.release()
    state = _state(database)
    assert (state.is_running, state.stage, state.last_outcome) == (False, None, "completed")
    assert state.last_ended is not None
    assert state.last_ended["dates_calculated"] == 3


def test_a_suspension_is_told_with_its_reason(database: ControlDatabase) -> None:
    """Whoever watches sees why nothing runs any more."""
    with database.write() as connection:
        suspend(connection, "five failures")
    assert _state(database).suspended_because == "five failures"
