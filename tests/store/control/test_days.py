"""The state of days."""

from __future__ import annotations

from datetime import date

import pytest

from chargeback.store.control import days
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import DatasetDay, DatasetState, DayState
from tests.support.days import set_chargebacks

FIRST, SECOND, THIRD = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)
CHARGEBACKS = days.DayDataset.CHARGEBACKS


def test_a_day_never_handled_is_all_false(database: ControlDatabase) -> None:
    """Reading an unknown day does not create it."""
    with database.read() as connection:
        assert days.read_day_state(connection, FIRST) == DayState(FIRST)
        assert days.read_days(connection) == []


def test_due_days_are_gathered_and_not_calculated(database: ControlDatabase) -> None:
    """Billing and resources make a day due, oldest first; a calculated day is not due until it is marked again."""
    with database.write() as connection:
        for day in (SECOND, FIRST, THIRD):
            days.save_day(connection, day, billing_gathered=day != THIRD)
        days.mark_resources_gathered(connection)
        assert [state.tracking_date for state in days.read_days(connection) if state.is_due] == [FIRST, SECOND]
        days.save_dataset(connection, CHARGEBACKS, [FIRST], state=DatasetState.CURRENT)
        assert [state.tracking_date for state in days.read_days(connection) if state.is_due] == [SECOND]
        days.mark_due(connection, CHARGEBACKS, [FIRST])
        assert [state.tracking_date for state in days.read_days(connection) if state.is_due] == [FIRST, SECOND]


def test_what_a_day_lacks_is_remembered_until_it_is_had(database: ControlDatabase) -> None:
    """Each reason is stored and removed separately, and has a sentence."""
    with database.write() as connection:
        days.mark_incomplete(connection, FIRST, {days.METRICS: "HTTP 503", days.listing("gadget"): "HTTP 403"})
        set_chargebacks(connection, FIRST, fingerprint="made", is_measured=True)
        state = days.read_day_state(connection, FIRST)
        assert state.shortcomings == ["listing of gadget: HTTP 403", "metrics: HTTP 503"]
        assert state.lacks == ["listing of gadget", "metrics"]
        assert (state.missing_listings, state.has_evidence(CHARGEBACKS)) == (["gadget"], False)
        days.mark_incomplete(connection, FIRST, {days.METRICS: None, days.BILL: "half of it"})
        state = days.read_day_state(connection, FIRST)
        assert state.incomplete == {days.listing("gadget"): "HTTP 403", days.BILL: "half of it"}
        assert state.has_evidence(CHARGEBACKS)
        assert not state.has_evidence(days.DayDataset.TOPICS)


def test_counts(database: ControlDatabase) -> None:
    """Counts have the pending days, the calculated days, and the newest calculated one."""
    with database.write() as connection:
        assert days.count_days(connection) == days.DayCounts(0, 0, None)
        days.save_day(connection, FIRST, billing_gathered=True)
        set_chargebacks(connection, FIRST)
        days.save_day(connection, SECOND, billing_gathered=True)
        days.save_day(connection, THIRD, error="no")
        assert days.count_days(connection) == days.DayCounts(1, 1, FIRST)


def test_the_newest_calculated_day(database: ControlDatabase) -> None:
    """A day that is being recalculated counts; one that was never calculated does not."""
    with database.write() as connection:
        assert days.newest_calculated(connection) is None
        set_chargebacks(connection, FIRST, fingerprint="x")
        set_chargebacks(connection, SECOND, state=DatasetState.DUE, fingerprint="x")
        days.save_day(connection, THIRD, billing_gathered=True)
        assert days.newest_calculated(connection) == SECOND


@pytest.mark.parametrize("dataset", days.DayDataset)
def test_the_states_of_a_day(database: ControlDatabase, dataset: days.DayDataset) -> None:
    """A dataset is none, due, current, in review, and removed; the other dataset and other days are unchanged."""
    seen = []
    with database.write() as connection:
        for day in (FIRST, SECOND):
            days.save_day(connection, day, billing_gathered=True)

        def look() -> DatasetDay:
            state = days.read_day_state(connection, FIRST)
            others = [days.read_day_state(connection, SECOND).of(each) for each in days.DayDataset]
            others += [state.of(each) for each in days.DayDataset if each is not dataset]
            assert set(others) == {DatasetDay()}
            return state.of(dataset)

        seen.append(look())
        days.mark_due(connection, dataset, [FIRST, THIRD])
        seen.append(look())
        days.mark_current(connection, dataset, FIRST, fingerprint="f", rows=3, revision=1, is_measured=True)
        seen.append(look())
        days.mark_for_review(connection, dataset, [FIRST])
        seen.append(look())
        days.mark_removed(connection, dataset, [FIRST])
        seen.append(look())
        assert days.read_day_state(connection, THIRD) == DayState(THIRD)
    assert seen == [
        DatasetDay(),
        DatasetDay(DatasetState.DUE),
        DatasetDay(DatasetState.CURRENT, True, "f", 3, 1),
        DatasetDay(DatasetState.REVIEW, True, "f", 3, 1),
        DatasetDay(DatasetState.NONE, fingerprint="f", revision=1),
    ]
    assert [each.is_current for each in seen] == [False, False, True, True, False]
    assert [each.is_queued for each in seen] == [False, True, False, True, False]
