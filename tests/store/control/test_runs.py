"""Runs, suspension, and the state of a pipeline."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy import select

from chargeback.store.control import runs, schema
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.control.runs import PipelineState, finish_run, pipeline_state, start_run, suspend


def outcomes(database: ControlDatabase) -> list[tuple[str, list[str]]]:
    """Return the outcomes of the runs, oldest first."""
    with database.read() as connection:
        rows = connection.execute(select(schema.runs.c.outcome, schema.runs.c.errors).order_by(schema.runs.c.run_id))
        return [(row.outcome, row.errors) for row in rows]


def test_a_run_is_recorded_from_start_to_end(database: ControlDatabase) -> None:
    """A run is visible from its start and keeps its counts and errors; only at its end is it the last completed one."""
    with database.write() as connection:
        run_id = runs.start_run(connection, 1)
        assert runs.last_completed(connection) is None
    assert outcomes(database) == [("running", [])]
    with database.write() as connection:
        runs.finish_run(
            connection, run_id, outcome="completed_with_errors", errors=["a", "b"], counts={"dates_gathered": 3}
        )
        assert runs.last_completed(connection) is not None
    assert outcomes(database) == [("completed_with_errors", ["a", "b"])]


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "interrupted"])
def test_a_run_that_did_not_complete_leaves_work(database: ControlDatabase, outcome: str) -> None:
    """After a run that failed or was interrupted, the next one may start at once, even if an earlier one completed."""
    with database.write() as connection:
        for how in ("completed", outcome):
            run_id = runs.start_run(connection, 1)
            runs.finish_run(connection, run_id, outcome=how, errors=[], counts={})
        assert runs.last_completed(connection) is None


def test_a_run_whose_process_died_was_interrupted(database: ControlDatabase) -> None:
    """The next run marks it as interrupted, and it is not the last completed one."""
    with database.write() as connection:
        runs.start_run(connection, 1)
        runs.start_run(connection, 2)
        assert runs.last_completed(connection) is None
    assert [outcome for outcome, _ in outcomes(database)] == ["interrupted", "running"]


def test_a_parent_records_what_its_child_could_not(database: ControlDatabase) -> None:
    """The open run of the epoch is closed, or recorded if the child never started it; an ended run is unchanged."""
    with database.write() as connection:
        runs.start_run(connection, 1)
        runs.close_open_run(connection, 1, outcome="timed_out", error="Execution timed out after 1s")
        runs.close_open_run(connection, 1, outcome="failed", error="too late")
        runs.close_open_run(connection, 2, outcome="failed", error="never started")
    assert outcomes(database) == [
        ("timed_out", ["Execution timed out after 1s"]),
        ("failed", ["never started"]),
    ]


def test_failures_lead_to_suspension_and_back(database: ControlDatabase) -> None:
    """Failures are counted until a success; a suspension lasts until a worker starts."""
    with database.write() as connection:
        assert [runs.count_gather_failure(connection) for _ in range(2)] == [1, 2]
        runs.reset_gather_failures(connection)
        assert runs.count_gather_failure(connection) == 1
        runs.suspend(connection, "the key was revoked")
        assert runs.suspended_because(connection) == "the key was revoked"
        runs.clear_suspension(connection)
        assert runs.suspended_because(connection) is None
        assert runs.count_gather_failure(connection) == 1


def state(database: ControlDatabase) -> PipelineState:
    """Return the present state of the pipeline."""
    with database.read() as connection:
        return pipeline_state(connection)


def test_a_new_tenant_never_ran(database: ControlDatabase) -> None:
    """A new tenant has no run, present or past."""
    assert state(database) == PipelineState(False, None, None, None, None, None, None)


def test_a_run_from_its_start_to_its_end(database: ControlDatabase) -> None:
    """While the lease is held, a run is in progress with its stage; afterwards its result is kept."""
    lease = acquire(database, LeaseOwner.this_process())
    with lease.write() as connection:
        number = start_run(connection, lease.epoch)
    lease.show("calculating", date(2026, 1, 2))
    now = state(database)
    assert (now.is_running, now.stage, now.stage_date) == (True, "calculating", date(2026, 1, 2))
    assert now.last_outcome == "running"
    assert now.last_at is not None
    with lease.write() as connection:
        finish_run(connection, number, outcome="completed", errors=[], counts={"dates_calculated": 3})
    lease.release()
    now = state(database)
    assert (now.is_running, now.stage, now.last_outcome) == (False, None, "completed")
    assert now.last_ended is not None
    assert now.last_ended["dates_calculated"] == 3


def test_a_suspension_is_told_with_its_reason(database: ControlDatabase) -> None:
    """The status has the reason for a suspension."""
    with database.write() as connection:
        suspend(connection, "five failures")
    assert state(database).suspended_because == "five failures"
