"""The plan of what is due for an emitter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from chargeback.model.accounting import AccountingPeriod
from chargeback.pipeline.emit import EmissionPlan, EmitterSchedule, plan
from chargeback.store.control.closings import Books, ClosedPeriod, Closing
from chargeback.store.control.emissions import Emission, EmissionState
from tests.support.facts import days_from

MONDAY = date(2026, 1, 26)
DAYS = days_from(MONDAY, 9)
FILES = {day: f"file-{day}" for day in DAYS}
DAILY = EmitterSchedule("finance", "daily", "settings", date.min, date.min)
WEEKLY = replace(DAILY, aggregation="weekly")


def done(planned: EmissionPlan, state: EmissionState = EmissionState.EMITTED) -> dict[date, Emission]:
    """Return the emissions when all due periods have ended in ``state``, including the recorded skipped ones."""
    found = {
        due.period.start: Emission("finance", due.period.start, state, due.version, due.attempts + 1)
        for due in planned.due
    }
    return found | {emission.tracking_date: emission for emission in planned.skipped}


def starts(planned: EmissionPlan) -> list[date]:
    """Return the first days of the due periods."""
    return [due.period.start for due in planned.due]


def test_everything_is_due_once_oldest_first() -> None:
    """Everything is due once, oldest first."""
    first = plan(DAILY, DAYS, FILES, {})
    assert starts(first) == DAYS
    assert plan(DAILY, DAYS, FILES, done(first)) == EmissionPlan([], [])


def test_what_failed_is_due_again_and_its_attempts_are_counted() -> None:
    """A failed day is retried by every run; attempts are counted from zero for a new version."""
    failed = done(plan(DAILY, DAYS, FILES, {}), EmissionState.FAILED)
    assert [due.attempts for due in plan(DAILY, DAYS, FILES, failed).due] == [1] * len(DAYS)
    assert plan(DAILY, DAYS, FILES | {MONDAY: "new"}, failed).due[0].attempts == 0


def test_a_day_that_was_calculated_again_is_due_again() -> None:
    """Only the changed day is due, also if it lost its last row."""
    known = done(plan(DAILY, DAYS, FILES, {}))
    assert starts(plan(DAILY, DAYS, FILES | {DAYS[2]: "new"}, known)) == [DAYS[2]]
    assert starts(plan(DAILY, DAYS, {day: FILES[day] for day in DAYS[1:]}, known)) == [MONDAY]


def test_other_settings_make_everything_due() -> None:
    """With other settings, everything is due again."""
    known = done(plan(DAILY, DAYS, FILES, {}))
    assert starts(plan(replace(DAILY, settings="other"), DAYS, FILES, known)) == DAYS


def test_a_week_is_due_while_it_grows() -> None:
    """Only the week of a new day is due again, not the one before."""
    known = done(plan(WEEKLY, DAYS[:8], {day: FILES[day] for day in DAYS[:8]}, {}))
    assert starts(plan(WEEKLY, DAYS, FILES, known)) == [DAYS[7]]


def test_a_day_that_waits_for_its_calculation_is_not_due() -> None:
    """A day that waits for its calculation is not due, and neither is its emitted week."""
    known = done(plan(WEEKLY, DAYS, FILES, {}))
    assert plan(WEEKLY, DAYS[:3] + DAYS[4:], FILES, known) == EmissionPlan([], [])
    assert starts(plan(DAILY, DAYS[1:], FILES, {})) == DAYS[1:]


def test_days_beyond_the_lookback_are_skipped() -> None:
    """Older days are recorded as skipped once, with the reason; a longer lookback makes them due."""
    short = replace(DAILY, oldest=DAYS[3])
    planned = plan(short, DAYS, FILES, {})
    assert starts(planned) == DAYS[3:]
    assert [(each.tracking_date, each.state, each.error) for each in planned.skipped] == [
        (day, "skipped", "older than lookback_days") for day in DAYS[:3]
    ]
    assert plan(short, DAYS, FILES, done(planned)) == EmissionPlan([], [])
    assert starts(plan(DAILY, DAYS, FILES, done(planned))) == DAYS[:3]


def test_a_failure_that_leaves_the_lookback_is_not_tried_any_more() -> None:
    """A failed day that leaves the lookback is skipped; an emitted day stays until it changes."""
    later = replace(DAILY, oldest=DAYS[1])
    everything = plan(DAILY, DAYS, FILES, {})
    (skipped,) = plan(later, DAYS, FILES, done(everything, EmissionState.FAILED)).skipped
    assert skipped.tracking_date == MONDAY
    assert plan(later, DAYS, FILES, done(everything)) == EmissionPlan([], [])
    (changed,) = plan(later, DAYS, FILES | {MONDAY: "new"}, done(everything)).skipped
    assert changed.tracking_date == MONDAY


def test_a_week_counts_as_long_as_one_of_its_days_does() -> None:
    """The whole week is due while one of its days is in the lookback."""
    planned = plan(replace(WEEKLY, oldest=MONDAY + timedelta(days=6)), DAYS, FILES, {})
    assert starts(planned) == [MONDAY, DAYS[7]]


@pytest.mark.parametrize("known", [{}, {MONDAY: Emission("finance", MONDAY, EmissionState.EMITTED, "whole", 1)}])
def test_a_week_that_retention_has_begun_to_remove_is_left_alone(known: dict[date, Emission]) -> None:
    """A week that retention has partly removed is not written, so that a complete file is not replaced."""
    planned = plan(replace(WEEKLY, kept_from=DAYS[2]), DAYS[2:], {day: FILES[day] for day in DAYS[2:]}, known)
    assert starts(planned) == [DAYS[7]]
    assert planned.skipped == []


def test_only_the_newest() -> None:
    """All other days are skipped; the previous newest day stays as it was."""
    schedule = replace(DAILY, newest_only=True)
    first = plan(schedule, DAYS[:-1], FILES, {})
    assert starts(first) == [DAYS[-2]]
    assert len(first.skipped) == len(DAYS) - 2
    second = plan(schedule, DAYS, FILES, done(first))
    assert (starts(second), second.skipped) == ([DAYS[-1]], [])


def test_no_calculated_day_is_nothing() -> None:
    """A tenant that has never been calculated has nothing to emit."""
    assert plan(replace(DAILY, newest_only=True), [], {}, {}) == EmissionPlan([], [])


def test_a_month_of_the_books_is_due_when_it_is_closed_and_then_no_more() -> None:
    """A closed month is due once. Later changes of it make the first open month due, unless the closed one is
    sealed."""
    january, february, march = (AccountingPeriod(date(2026, month, 1)) for month in (1, 2, 3))
    days = [each.start for each in (january, february, march)]
    files = {day: f"file-{day}" for day in days}
    monthly = replace(DAILY, aggregation="monthly")
    known = done(plan(monthly, days, files, {}))
    closing = Closing(1, january, "closed", datetime(2026, 2, 5, tzinfo=UTC), "digest-1", None)
    closed = replace(monthly, books=Books((ClosedPeriod(closing),)))
    after = plan(closed, days, files, known)
    assert starts(after) == days[:2]
    known |= done(after)
    assert starts(plan(closed, days, files | {days[0]: "late"}, known)) == [days[1]]
    assert starts(plan(closed, days, files | {days[2]: "late"}, known)) == [days[2]]
    seal = Closing(2, january, "sealed", datetime(2026, 3, 5, tzinfo=UTC), "digest-2", None)
    sealed = replace(monthly, books=Books((ClosedPeriod(closing, 1, seal),)))
    known |= done(plan(sealed, days, files, known))
    assert starts(plan(sealed, days, files | {days[0]: "late"}, known)) == []
