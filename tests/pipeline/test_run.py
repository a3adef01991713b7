"""A run from the lease to the record, against a served organisation."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select

from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.model.days import ONE_DAY
from chargeback.model.money import total
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import Progress, RunOutcome, Stage, StopReason, StopSignal
from chargeback.recompute.verify import verify
from chargeback.reports.health import HealthAnswer, health
from chargeback.store.control import schema
from chargeback.store.control.events import read_events
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.runs import pipeline_state, suspended_because
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, USAGE_TABLE, read_day
from tests.support.clock import TODAY
from tests.support.deployments import DAYS, Deployment

CUTOFF = 5
WINDOW = [TODAY - timedelta(days=offset) for offset in range(DAYS, CUTOFF, -1)]
DAY = WINDOW[3]
TOMORROW = TODAY + ONE_DAY


def versions(deployment: Deployment) -> dict[str, int]:
    """Return the version of each table."""
    return {name: deployment.store.facts.snapshot(name).version for name in (BILLING_TABLE, CHARGEBACKS_TABLE)}


def test_a_first_run_calculates_the_window_to_the_last_digit(
    deployment: Deployment, organisation: Organisation
) -> None:
    """Every day of [today − lookback, today − cutoff) is gathered and calculated, and equals the provider's bill."""
    result = deployment.run()
    assert (result.outcome, result.errors) == (RunOutcome.COMPLETED, ())
    assert result.dates_gathered == result.dates_calculated == result.dates_pending == len(WINDOW)
    assert [state.tracking_date for state in deployment.states()] == WINDOW
    assert all(state.chargebacks.is_current for state in deployment.states())
    assert all(state.chargebacks.fingerprint == state.gathered_fingerprint for state in deployment.states())
    checks = list(verify(deployment.store))
    assert [check.difference for check in checks] == [Decimal(0)] * len(WINDOW)
    assert total(check.billing for check in checks) == organisation.cost_total(
        WINDOW[0], WINDOW[-1] + timedelta(days=1)
    )
    assert result.chargeback_rows_written == deployment.all_rows().num_rows > 0


def test_progress_tells_stage_day_and_counts(deployment: Deployment) -> None:
    """The listener gets both stages, and the last message of each reports all of its days as done."""
    deployment.run()
    for stage in (Stage.GATHERING, Stage.CALCULATING):
        heard = [progress for progress in deployment.progress if progress.stage is stage]
        assert (heard[-1].done, heard[-1].total) == (len(WINDOW), len(WINDOW))
    assert deployment.progress[-1].rows > deployment.progress[-1].lines > 0


@pytest.mark.everyday
def test_a_second_run_changes_nothing(calculated: Deployment) -> None:
    """Days with unchanged inputs are neither written nor calculated again."""
    before = versions(calculated)
    result = calculated.run()
    assert (result.outcome, result.dates_calculated) == (RunOutcome.COMPLETED, 0)
    assert versions(calculated) == before


@pytest.mark.everyday
def test_only_a_changed_day_is_calculated_again(calculated: Deployment) -> None:
    """A late correction recalculates only its day, from stored usage."""
    asked = calculated.server.requests["/prometheus/api/v1/query"]
    changes = calculated.server.changes
    changes.add_cost(DAY, {**changes.cost_rows(DAY)[0], "id": "late", "amount": Decimal("1.25")})
    result = calculated.run()
    assert (result.outcome, result.dates_calculated) == (RunOutcome.COMPLETED, 1)
    assert calculated.server.requests["/prometheus/api/v1/query"] == asked
    assert not [check for check in verify(calculated.store) if check.difference]
    assert calculated.state(DAY).billing_lines == len(changes.cost_rows(DAY))


@pytest.mark.everyday
def test_what_is_not_money_does_not_recalculate(calculated: Deployment) -> None:
    """Other ids, names and descriptions in the provider's response are not a change."""
    calculated.server.changes.edit_costs(
        DAY, lambda rows: [{**row, "id": f"new-{n}", "description": "again"} for n, row in enumerate(rows)]
    )
    assert calculated.run().dates_calculated == 0


@pytest.mark.everyday
def test_a_day_that_loses_its_lines_keeps_them_until_the_third_answer(calculated: Deployment) -> None:
    """An empty response is an error of the run, and is accepted only the third time."""
    before = calculated.rows(DAY)
    calculated.server.changes.drop_costs(DAY)
    for _ in range(2):
        result = calculated.run()
        assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
        assert [str(DAY) in error for error in result.errors] == [True]
        assert calculated.rows(DAY).equals(before)
    assert calculated.run().outcome is RunOutcome.COMPLETED
    assert calculated.rows(DAY).num_rows == 0
    assert calculated.state(DAY).chargebacks.is_current


def test_an_empty_answer_in_between_does_not_count_for_ever(calculated: Deployment) -> None:
    """When the lines return, empty responses are counted from zero again."""
    for _ in range(2):
        calculated.server.changes.drop_costs(DAY)
        calculated.run()
        calculated.server.changes.restore_costs(DAY)
        assert calculated.run().dates_calculated == 0
    assert calculated.state(DAY).empty_answers == 0


def test_a_day_without_cost_is_gathered_and_calculated(deployment: Deployment) -> None:
    """A day that never had lines is calculated, without rows."""
    deployment.server.changes.drop_costs(DAY)
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert deployment.state(DAY).chargebacks.is_current
    assert DAY not in deployment.store.facts.snapshot(CHARGEBACKS_TABLE).days


def test_an_optional_listing_that_fails_is_survived(calculated: Deployment) -> None:
    """The last known inventory is used, nothing is deleted, and the run reports the failure."""
    calculated.server.faults.add("/fcpm/v2/compute-pools", Fault(status=403, times=None))
    result = calculated.run()
    assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
    assert any("compute_pool" in error for error in result.errors)
    with calculated.store.control.read() as connection:
        pools = [r for r in read_inventory(connection).resources if r.resource_type == "flink_compute_pool"]
    assert pools
    assert all(pool.deleted_at is None for pool in pools)


def test_a_required_listing_that_fails_fails_the_gathering(deployment: Deployment) -> None:
    """Days wait for an inventory, and their bill is kept."""
    deployment.server.faults.add("/iam/v2/service-accounts", Fault(status=403, times=None))
    result = deployment.run()
    assert (result.outcome, result.dates_calculated) == (RunOutcome.FAILED, 0)
    assert all(state.billing_gathered and not state.resources_gathered for state in deployment.states())
    deployment.server.faults.clear()
    assert deployment.run().dates_calculated == len(WINDOW)


@pytest.mark.extensive
def test_repeated_failures_suspend_and_a_success_forgives(deployment: Deployment) -> None:
    """A failed run counts once; a success before the threshold resets the count; the threshold suspends the tenant."""
    deployment.configure(gather_failure_threshold=2)

    def is_suspended() -> bool:
        with deployment.store.control.read() as connection:
            return suspended_because(connection) is not None

    deployment.server.faults.add("/billing/v1/costs", Fault(status=401, times=1))
    deployment.run()
    deployment.run()
    assert not is_suspended()
    deployment.server.faults.add("/billing/v1/costs", Fault(status=401, times=None))
    deployment.run()
    assert not is_suspended()
    deployment.run()
    assert is_suspended()
    with deployment.store.control.read() as connection:
        told = [(each["kind"], each["body"]) for each in read_events(connection, after=0, kind=None, limit=99)]
    kinds = [kind for kind, _ in told if kind in {"run.failed", "tenant.suspended"}]
    assert kinds == ["run.failed", "tenant.suspended"], "once a day, and when it is suspended"
    assert "gathering failed 2 times in a row" in dict(told)["tenant.suspended"]["reason"]
    assert "401" in dict(told)["run.failed"]["error"]


def test_metrics_that_do_not_answer_leave_days_pending_then_go_without(deployment: Deployment) -> None:
    """Days wait for the metrics for a few runs, are then calculated without them, and recalculated when they are
    available."""
    deployment.configure(allocation_retry_limit=2, lookback_days=8)
    deployment.lose_metrics()
    first = deployment.run()
    assert (first.outcome, first.dates_calculated) == (RunOutcome.COMPLETED_WITH_ERRORS, 0)
    assert all("metrics unavailable" in str(state.error) for state in deployment.states())
    second = deployment.run()
    assert second.dates_calculated == len(deployment.states()) == 3
    details = set(deployment.all_rows()["allocation_detail"].to_pylist())
    assert "METRICS_UNAVAILABLE" in details
    assert "USAGE_RATIO_ALLOCATION" not in details
    third = deployment.run()
    assert third.dates_calculated == 0
    deployment.have_metrics()
    assert deployment.run().dates_calculated == 3
    details = set(deployment.all_rows()["allocation_detail"].to_pylist())
    assert "METRICS_UNAVAILABLE" not in details
    assert "USAGE_RATIO_ALLOCATION" in details
    assert deployment.run().dates_calculated == 0


def test_health_knows_a_refusal_and_what_ends_it(deployment: Deployment) -> None:
    """A refusing source is reported: for the bill before any day exists, for the metrics by day."""

    def seen() -> HealthAnswer:
        with deployment.store.control.read() as connection:
            pipeline = pipeline_state(connection)
        return health(deployment.states(), pipeline, lookback_days=DAYS, has_topics=False, topic_error=None)

    deployment.server.faults.add("/billing/v1/costs", Fault(status=401, times=None))
    deployment.run()
    bill, inventory, _ = seen().sources
    assert (bill.days, bill.is_refused, inventory.error) == (0, True, None)
    assert "HTTP 401" in str(bill.error)
    assert [(each.kind, each.ended_by) for each in seen().problems] == [("run_failed", "source")]
    deployment.have_metrics()
    deployment.lose_metrics()
    deployment.run()
    bill, inventory, metrics = seen().sources
    assert (bill.days, bill.error, inventory.days) == (len(WINDOW), None, len(WINDOW))
    assert (metrics.days, metrics.is_refused) == (0, True)
    assert "HTTP 403" in str(metrics.error)
    waiting = seen().problems[0]
    assert (waiting.kind, waiting.ended_by, waiting.days) == ("days_waiting", "source", len(WINDOW))


def test_kept_evidence_outlives_the_metrics(calculated: Deployment) -> None:
    """A bill that changes after the metrics have lost the day is split by the stored usage."""
    usage = read_day(calculated.store.facts, USAGE_TABLE, DAY)
    calculated.lose_metrics()
    calculated.server.changes.edit_costs(DAY, lambda rows: [{**row, "amount": row["amount"] * 2} for row in rows])
    assert calculated.run().outcome is RunOutcome.COMPLETED
    assert "USAGE_RATIO_ALLOCATION" in calculated.rows(DAY)["allocation_detail"].to_pylist()
    assert read_day(calculated.store.facts, USAGE_TABLE, DAY).equals(usage)


def test_recalculation_of_the_same_inputs_gives_the_same_bytes(calculated: Deployment) -> None:
    """`recalculate` calculates the given days again, with exactly the same rows."""
    before = calculated.all_rows()
    result = calculated.run(RunRequest(WINDOW[1], WINDOW[3], recalculate=True))
    assert result.dates_calculated == 3
    assert calculated.all_rows().equals(before)


def test_a_poorer_answer_does_not_replace_evidence(calculated: Deployment, caplog: pytest.LogCaptureFixture) -> None:
    """If the metrics have lost a day, a recalculation keeps the stored measurements and logs that."""
    before = calculated.all_rows()
    calculated.server.faults.add(
        "/prometheus/api/v1/query",
        Fault(status=200, body='{"status":"success","data":{"resultType":"vector","result":[]}}', times=None),
    )
    assert calculated.run(RunRequest(DAY, DAY, recalculate=True)).dates_calculated == 1
    assert "the stored measurements are kept" in caplog.text
    assert calculated.all_rows().equals(before)


@pytest.mark.extensive
def test_a_request_narrows_what_is_calculated(deployment: Deployment) -> None:
    """Only days of the requested range are calculated, the others stay due; calculated days are not calculated
    again."""
    assert deployment.run(RunRequest(start=WINDOW[2], end=WINDOW[3])).dates_calculated == 2
    assert deployment.run(RunRequest(start=WINDOW[0], end=WINDOW[-1])).dates_calculated == len(WINDOW) - 2


def test_a_run_ends_between_days_when_it_is_stopped(deployment: Deployment) -> None:
    """Finished days are kept, nothing is half-written, and the next run finishes the work."""
    stop = StopSignal()

    def stop_early(progress: Progress) -> None:
        if progress.stage is Stage.CALCULATING and progress.done == 2:
            stop.ask(StopReason())

    result = deployment.run(stop=stop, listener=stop_early)
    assert (result.outcome, result.dates_calculated) == (RunOutcome.INTERRUPTED, 2)
    assert deployment.run().dates_calculated == len(WINDOW) - 2
    assert not [check for check in verify(deployment.store) if check.difference]


def test_everything_billed_and_charged_is_in_the_inventory(calculated: Deployment) -> None:
    """Every billed resource and every charged identity is in the inventory, including UNALLOCATED."""
    with calculated.store.control.read() as connection:
        inventory = read_inventory(connection)
    rows = calculated.all_rows()
    assert set(rows["resource_id"].to_pylist()) <= {resource.resource_id for resource in inventory.resources}
    known = {identity.identity_id: identity.identity_type for identity in inventory.identities}
    assert set(rows["identity_id"].to_pylist()) <= known.keys()
    assert known["UNALLOCATED"] == "system"


def test_runs_are_recorded(calculated: Deployment) -> None:
    """Each run records its counts and outcome, and the lease is free."""
    with calculated.store.control.read() as connection:
        run = connection.execute(select(schema.runs)).one()
        tenant = connection.execute(select(schema.tenant)).one()
    assert (run.outcome, run.dates_calculated, run.errors) == ("completed", len(WINDOW), [])
    assert (tenant.lease_owner, tenant.stage) == (None, None)


@pytest.mark.extensive
def test_a_day_is_asked_for_once_in_a_while_when_it_is_old(deployment: Deployment) -> None:
    """Recent days are gathered in every run; a day 35 days past the cut-off once in 24 hours."""
    deployment.configure(lookback_days=42)
    first = deployment.run()
    second = deployment.run()
    assert first.dates_gathered == 42 - CUTOFF
    assert second.dates_gathered == 35


@pytest.mark.extensive
def test_a_run_across_midnight_has_one_day(deployment: Deployment) -> None:
    """A run keeps the day on which it begins, for gathering, for requests to the provider and for retention. Records
    have the actual time."""
    before, after = (
        datetime.combine(day, hour, UTC) for day, hour in ((TODAY, time(23, 59, 59)), (TOMORROW, time(0, 5)))
    )
    present = [before]
    deployment.clock = lambda: present[-1]
    deployment.configure(retention_days=DAYS)
    result = deployment.run(listener=lambda told: present.append(after) if told.stage is Stage.GATHERING else None)
    assert (result.outcome, result.errors, result.completed_at) == (RunOutcome.COMPLETED, (), after)
    assert [state.tracking_date for state in deployment.states()] == WINDOW
    assert all(state.chargebacks.is_current and state.gathered_at == after for state in deployment.states())
    assert deployment.store.facts.snapshot(CHARGEBACKS_TABLE).days == WINDOW
    with deployment.store.control.read() as connection:
        run = connection.execute(select(schema.runs)).one()
    assert (run.started_at, run.ended_at) == (before, after)
    deployment.run()
    assert deployment.store.facts.snapshot(CHARGEBACKS_TABLE).days == [*WINDOW[1:], WINDOW[-1] + ONE_DAY]


def test_days_are_utc(calculated: Deployment) -> None:
    """Every row of a day is at 00:00 UTC of that day."""
    stamps = {stamp.date() for stamp in calculated.rows(DAY)["timestamp"].to_pylist()}
    assert stamps == {date.fromisoformat(str(DAY))}


def test_the_audit_log_names_who_asked_for_a_run(calculated: Deployment) -> None:
    """The entry has the request; a scheduled run is not in the log."""
    calculated.run()
    result = calculated.run(RunRequest(DAY, DAY, recalculate=True, requested_by="api"))
    assert result.outcome is RunOutcome.COMPLETED
    with calculated.store.control.read() as connection:
        (entry,) = connection.execute(select(schema.audit)).mappings()
        run_id = max(connection.execute(select(schema.runs.c.run_id)).scalars())
    assert (entry["who"], entry["what"], entry["target"]) == ("api", "run.requested", f"run/{run_id}")
    days = {"start_date": str(DAY), "end_date": str(DAY)}
    assert entry["after"] == days | {"recalculate": True, "accept_less": False, "restate": False, "reason": None}
