"""The state of days."""

from __future__ import annotations

from datetime import date

from chargeback.store.control import days
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import DayState

FIRST, SECOND, THIRD = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)


def test_a_day_never_handled_is_all_false(database: ControlDatabase) -> None:
    """Asking for an unknown day makes none."""
    with database.read() as connection:
        assert days.read_day_state(connection, FIRST) == DayState(FIRST)
        assert days.read_days(connection) == []


def test_due_days_are_gathered_and_not_calculated(database: ControlDatabase) -> None:
    """Billing and resources make a day due, oldest first; a calculated one is not, until it is required again."""
    with database.write() as connection:
        for day in (SECOND, FIRST, THIRD):
            days.save_day(connection, day, billing_gathered=day != THIRD)
        days.mark_resources_gathered(connection)
        assert [state.tracking_date for state in days.read_days(connection) if state.is_due] == [FIRST, SECOND]
        days.save_day(connection, FIRST, chargeback_calculated=True)
        assert [state.tracking_date for state in days.read_days(connection) if state.is_due] == [SECOND]
        days.require_calculation(connection, [FIRST])
        assert [state.tracking_date for state in days.read_days(connection) if state.is_due] == [FIRST, SECOND]


def test_what_a_day_lacks_is_remembered_until_it_is_had(database: ControlDatabase) -> None:
    """Each reason is noted and taken away by itself, and told in a sentence."""
    with database.write() as connection:
        days.mark_incomplete(connection, FIRST, {days.METRICS: "HTTP 503", days.listing("gadget"): "HTTP 403"})
        days.save_day(connection, FIRST, calculated_fingerprint="made", chargeback_calculated=True)
        state = days.read_day_state(connection, FIRST)
        assert state.shortcomings == ["listing of gadget: HTTP 403", "metrics: HTTP 503"]
        assert state.lacks == ["listing of gadget", "metrics"]
        assert (state.missing_listings, state.has_evidence) == (["gadget"], False)
        days.mark_incomplete(connection, FIRST, {days.METRICS: None, days.BILL: "half of it"})
        state = days.read_day_state(connection, FIRST)
        assert state.incomplete == {days.listing("gadget"): "HTTP 403", days.BILL: "half of it"}
        assert state.has_evidence


def test_counts(database: ControlDatabase) -> None:
    """Pending, calculated and the newest calculated day."""
    with database.write() as connection:
        assert days.count_days(connection) == days.DayCounts(0, 0, None)
        days.save_day(connection, FIRST, billing_gathered=True, chargeback_calculated=True)
        days.save_day(connection, SECOND, billing_gathered=True)
        days.save_day(connection, THIRD, error="no")
        assert days.count_days(connection) == days.DayCounts(1, 1, FIRST)
