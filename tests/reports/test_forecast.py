"""A forecast says what its method says, and how far off that has been."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from chargeback.reports.forecast import forecast

LAST = date(2026, 11, 20)  # ten days are left
STEADY = [Decimal(7)] * 60


def test_what_is_steady_is_certain() -> None:
    """Without any change the month is known to the cent."""
    found = forecast(LAST, STEADY, "USD")
    assert found is not None
    assert (found.until, found.actual_to, found.actual) == (date(2026, 11, 30), LAST, Decimal(140))
    assert found.expected == found.low == found.high == 210
    assert "last 7 calculated days" in found.method
    assert "44 earlier stretches of 10 days" in found.method


def test_the_last_week_decides() -> None:
    """Every day to come is taken to cost the mean of the last seven."""
    found = forecast(LAST, [*STEADY, *[Decimal(14)] * 7], "USD")
    assert found is not None
    assert found.expected == 13 * 7 + 7 * 14 + 140
    assert found.low <= found.expected <= found.high
    assert found.high > found.expected


def test_too_few_days_are_no_forecast() -> None:
    """Neither at the end of a month, nor without enough days to know the errors of the past."""
    assert forecast(date(2026, 11, 30), STEADY, "USD") is None
    assert forecast(LAST, STEADY[:25], "USD") is None
    assert forecast(LAST, STEADY[:26], "USD") is not None
    assert forecast(LAST, STEADY[:19], "USD") is None  # the month itself is not whole


@given(st.lists(st.decimals(-(10**9), 10**9, places=12), min_size=26, max_size=98))
def test_the_interval_contains_what_is_expected(daily: list[Decimal]) -> None:
    """Whatever was spent, refunds included."""
    found = forecast(LAST, daily, "USD")
    assert found is not None
    assert found.low <= found.expected <= found.high
