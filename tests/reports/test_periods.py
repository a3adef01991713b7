"""Periods are calendar days, under any name."""

from __future__ import annotations

import re
from datetime import date

import pytest

from chargeback.reports.periods import COMPARISON, PERIOD, CalendarPeriod, compared_period, named_period

LAST = date(2026, 11, 14)


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("1d", LAST, LAST),
        ("30d", date(2026, 10, 16), LAST),
        ("month", date(2026, 11, 1), LAST),
        ("last-month", date(2026, 10, 1), date(2026, 10, 31)),
        ("quarter", date(2026, 10, 1), LAST),
        ("week", date(2026, 11, 9), LAST),
        ("last-week", date(2026, 11, 2), date(2026, 11, 8)),
        ("last-quarter", date(2026, 7, 1), date(2026, 9, 30)),
        ("year", date(2026, 1, 1), LAST),
        ("last-year", date(2025, 1, 1), date(2025, 12, 31)),
        ("2024-02", date(2024, 2, 1), date(2024, 2, 29)),
        ("2026-12", date(2026, 12, 1), date(2026, 12, 31)),
    ],
)
def test_named_periods(name: str, start: date, end: date) -> None:
    """Current periods end on the last calculated day; all others are whole."""
    assert re.fullmatch(PERIOD, name)
    assert named_period(name, LAST) == CalendarPeriod(start, end)


@pytest.mark.parametrize("name", ["0d", "7", "d", "1000d", "weeks", "last-7d", "2026-13", "2026-1", "", "7D"])
def test_what_is_no_period(name: str) -> None:
    """Other texts are not periods."""
    assert not re.fullmatch(PERIOD, name)


def test_the_period_before_has_the_same_length() -> None:
    """The previous period has the same length and ends on the day before."""
    period = CalendarPeriod(date(2026, 3, 1), date(2026, 3, 31))
    assert compared_period("previous", period) == CalendarPeriod(date(2026, 1, 29), date(2026, 2, 28))
    assert compared_period("none", period) is None


def test_the_year_before_has_the_same_dates() -> None:
    """The year-ago period has the same dates; a leap day becomes the last of February."""
    assert compared_period("year", CalendarPeriod(date(2024, 2, 29), date(2024, 3, 1))) == CalendarPeriod(
        date(2023, 2, 28), date(2023, 3, 1)
    )


def test_two_dates_are_a_period() -> None:
    """Two dates must exist, be in order, and be in the supported range."""
    period = CalendarPeriod(LAST, LAST)
    assert compared_period("2026-01-01..2026-01-02", period) == CalendarPeriod(date(2026, 1, 1), date(2026, 1, 2))
    for wrong in (
        "2026-01-02..2026-01-01",
        "2026-02-30..2026-03-01",
        "0001-01-01..2026-01-01",
        "2026-01-01..9999-12-31",
    ):
        assert re.fullmatch(COMPARISON, wrong)
        with pytest.raises(ValueError, match="should"):
            compared_period(wrong, period)
