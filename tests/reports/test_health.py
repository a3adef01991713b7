"""Problems are listed with their cause and what ends them, the worst first."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from chargeback.reports.health import HealthAnswer, health
from chargeback.store.control.days import METRICS, DatasetDay, DatasetState, DayState
from chargeback.store.control.runs import PipelineState

FIRST = date(2026, 11, 1)
DONE = DatasetDay(DatasetState.CURRENT, is_measured=True, fingerprint="f", rows=3, revision=1)


def _days(count: int, start: int = 0, **changes: Any) -> list[DayState]:
    usual: dict[str, Any] = {
        "billing_gathered": True,
        "resources_gathered": True,
        "gathered_at": datetime(2026, 11, 20, 5, tzinfo=UTC),
        "chargebacks": DONE,
    }
    return [DayState(FIRST + timedelta(days=start + day), **(usual | changes)) for day in range(count)]


def _health(states: list[DayState], errors: list[str] | None = None, **more: Any) -> HealthAnswer:
    about = {"errors_from": FIRST, "errors_to": FIRST + timedelta(days=2)}
    outcome = more.pop("outcome", "completed_with_errors")
    ended: Any = None if errors is None else {"errors": errors, "outcome": outcome, **about}
    state = PipelineState(
        is_running=False,
        stage=None,
        stage_date=None,
        suspended_because=more.pop("suspended", None),
        last_ended=ended,
        last_outcome=None,
        last_at=None,
    )
    return health(states, state, lookback_days=35, has_topics=False, topic_error=more.pop("topic_error", None))


def test_nothing_is_wrong() -> None:
    """If every source has responded for every day, there is no problem."""
    found = _health(_days(3), errors=[], outcome="completed")
    assert (found.state, found.problems, found.days_calculated) == ("ok", [], 3)
    assert [(each.source, each.days, each.error) for each in found.sources] == [
        ("bill", 3, None),
        ("inventory", 3, None),
        ("metrics", 3, None),
    ]


def test_the_worst_comes_first() -> None:
    """A suspension comes first, then waiting days, the latest first, then warnings."""
    less = {METRICS: "the source answered 401"}
    states = [
        *_days(2, incomplete=less),
        *_days(2, 2, chargebacks=DatasetDay(), error="the bill is empty"),
        *_days(1, 4),
        *_days(1, 5, chargebacks=DatasetDay(), error="the bill is empty"),
        *_days(1, 6, chargebacks=DatasetDay(DatasetState.DUE)),
        *_days(1, 7, chargebacks=DatasetDay(), resources_gathered=False),
    ]
    found = _health(
        states, errors=["2026-11-06: the bill is empty"], suspended="The key is not valid.", topic_error="x"
    )
    assert [
        (each.kind, each.severity, each.start_date and each.start_date.day, each.days) for each in found.problems
    ] == [
        ("suspended", "bad", None, 0),
        ("days_waiting", "bad", 8, 1),
        ("days_waiting", "bad", 7, 1),
        ("days_waiting", "bad", 6, 1),
        ("days_waiting", "bad", 3, 2),
        ("run_failed", "warning", 1, 0),
        ("days_incomplete", "warning", 1, 2),
        ("topics_misconfigured", "warning", None, 0),
    ]
    assert found.state == "bad"
    assert [each.ended_by for each in found.problems] == [
        *("restart", "run", "run", "run", "run"),
        *("run", "source", "restart"),
    ]
    causes = [each.causes for each in found.problems[1:4]]
    assert causes == [
        ["The inventory of the day is not complete yet."],
        ["It waits for the next run."],
        ["the bill is empty"],
    ]
    assert found.problems[6].causes == ["metrics: the source answered 401"]
    assert [(each.source, each.days, each.error) for each in found.sources] == [
        ("bill", 8, None),
        ("inventory", 7, None),
        ("metrics", 1, "the source answered 401"),
    ]


def test_a_first_run_that_was_refused() -> None:
    """Without any day, the source has the reason for the refusal."""
    found = _health([DayState(FIRST, error="the key was refused (401)")], errors=["refused"], outcome="failed")
    assert [(each.kind, each.severity) for each in found.problems] == [("days_waiting", "bad"), ("run_failed", "bad")]
    bill = found.sources[0]
    assert (bill.source, bill.days, bill.error) == ("bill", 0, "the key was refused (401)")
    assert (found.days_calculated, found.lookback_days) == (0, 35)


def test_a_source_that_refuses_before_any_day_is_there() -> None:
    """The last run has the reason why bill and inventory could not be fetched, and the remedy."""
    refused = "HTTP 403: no billing role (source costs)"
    listing = "cluster could not be listed; new bills are not calculated: HTTP 401"
    found = _health([], errors=[f"gathering failed: {refused}", listing], outcome="failed")
    bill, inventory, metrics = found.sources
    assert (bill.error, bill.is_refused, inventory.error, inventory.is_refused) == (refused, True, listing, True)
    assert bill.remedy is not None
    assert "Correct its key" in bill.remedy
    assert (metrics.error, metrics.is_refused, metrics.remedy) == (None, False, None)
    assert [(each.kind, each.ended_by) for each in found.problems] == [("run_failed", "source")]


def test_what_a_run_can_end() -> None:
    """A run ends a problem if the day has a bill and no source refuses; otherwise the source must be corrected."""
    waits = DatasetDay(DatasetState.DUE)
    states = [
        *_days(1, chargebacks=waits, error="metrics unavailable: HTTP 401: bad key"),
        *_days(1, 1, chargebacks=waits, error="metrics unavailable: HTTP 503"),
        *_days(1, 2, chargebacks=waits),
        *_days(1, 3, chargebacks=waits, resources_gathered=False),
        *_days(1, 4, chargebacks=waits, billing_gathered=False, error="a line has no amount"),
    ]
    found = _health(states)
    ends = [(each.start_date and each.start_date.day, each.ended_by) for each in found.problems]
    assert ends == [(5, "source"), (4, "run"), (3, "run"), (2, "run"), (1, "source")]
    metrics = found.sources[2]
    assert (metrics.days, metrics.error, metrics.is_refused) == (0, "HTTP 503", False)
    # Days do not record why their inventory is missing: if it was refused in the last run, it will be in the next one.
    refused = _health(states[3:4], errors=["user could not be listed; new bills are not calculated: HTTP 401"])
    assert (refused.problems[0].kind, refused.problems[0].ended_by) == ("days_waiting", "source")
