"""Forecasts, their method, and their past errors."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.days import ONE_DAY, DayRange, month_of
from chargeback.reports.forecast import HISTORY, CostForecast, History, daily_forecast, forecast

LAST = date(2026, 11, 20)  # ten days are left
STEADY = [Decimal(7)] * 60


def _of(last: date, daily: Sequence[Decimal], currency: str) -> CostForecast | None:
    """Return the forecast for daily amounts up to a last day."""
    return forecast(History(_days(last, daily), daily), currency)


def _days(last: date, daily: Sequence[Decimal]) -> DayRange:
    return DayRange(last - timedelta(days=len(daily) - 1), last + ONE_DAY)


def test_what_is_steady_is_certain() -> None:
    """Constant costs have an exact forecast."""
    found = _of(LAST, STEADY, "USD")
    assert found is not None
    assert (found.until, found.actual_to, found.actual) == (date(2026, 11, 30), LAST, Decimal(140))
    assert found.expected == found.low == found.high == 210
    assert "median of its weekday in the last 4 weeks" in found.method
    assert "(25%)" in found.method
    assert "37 earlier windows of 10 days" in found.method


def test_what_the_last_week_was_like_is_expected() -> None:
    """A level that lasts a week is expected to continue; one that lasts two days is not."""
    found = _of(LAST, [*STEADY, *[Decimal(14)] * 7], "USD")
    assert found is not None
    assert found.expected == 13 * 7 + 7 * 14 + 140
    found = _of(LAST, [*STEADY, *[Decimal(14)] * 2], "USD")
    assert found is not None
    assert found.expected == 18 * 7 + 2 * 14 + 70
    assert found.low <= found.expected <= found.high


def _costs(rng: random.Random, days: int) -> list[Decimal]:
    """Return the costs of days up to a Friday, lower at weekends, with a little noise."""
    weekday = (100, 70, 60, 100, 100, 100, 100)
    return [Decimal(round(weekday[day % 7] * rng.gauss(1, 0.05), 2)).quantize(Decimal("0.01")) for day in range(days)]


def _rest_lies_inside(last: date, daily: list[Decimal], rest: list[Decimal]) -> bool:
    found = _of(last, daily, "USD")
    assert found is not None
    return found.low <= found.actual + sum(rest) <= found.high


@pytest.mark.parametrize("last", [date(2026, 11, 3), date(2026, 11, 10), LAST, date(2026, 11, 26)])
@pytest.mark.parametrize("before", [0, 1, 3, 9, 20])
def test_after_a_spike_a_usual_rest_of_the_month_is_inside(last: date, before: int) -> None:
    """After a spike on any day, a usual rest of the month is inside the interval in seven of ten cases or more."""
    rng = random.Random(f"{last} {before}")
    left = 30 - last.day
    inside = 0
    for _ in range(100):
        days = _costs(rng, 75 + left)
        daily, rest = days[:75], days[75:]
        daily[-1 - before] *= 12
        inside += _rest_lies_inside(last, daily, rest)
    assert inside >= 70


def test_a_spike_is_not_expected_again() -> None:
    """A spike does not change what is expected of later days, even if it was yesterday."""
    usual, spiked = (_of(LAST, [*STEADY[:-1], cost], "USD") for cost in (Decimal(7), Decimal(700)))
    assert usual is not None
    assert spiked is not None
    assert spiked.expected - spiked.actual == usual.expected - usual.actual
    assert spiked.low <= spiked.actual + 70 <= spiked.high


def test_eight_of_ten_months_end_inside() -> None:
    """Of a hundred months with usual costs and a spike on one day of twenty, 70 to 95 end inside the interval."""
    rng = random.Random(7)
    inside = 0
    for _ in range(100):
        days = [cost * (5 if rng.random() < 0.05 else 1) for cost in _costs(rng, 100)]
        inside += _rest_lies_inside(LAST, days[:90], days[90:])
    assert 70 <= inside <= 95


def test_it_beats_the_mean_of_the_last_week() -> None:
    """On the tenth of a month, the error is at least 30 % lower than with the mean for years with noise or spikes, and
    25 % lower for years that grow or fall."""
    steady = [_errors(noise, 0, spikes) for noise in (0.05, 0.1, 0.2) for spikes in (0, 0.02)]
    moving = [_errors(noise, grows, 0) for noise in (0.05, 0.1, 0.2) for grows in (0.5, 1, -0.3)]
    assert sum(ours for ours, _ in steady) <= 0.7 * sum(naive for _, naive in steady)
    assert sum(ours for ours, _ in moving) <= 0.75 * sum(naive for _, naive in moving)


@pytest.mark.parametrize("factor", [Decimal("0.5"), Decimal(3)])
@pytest.mark.parametrize("ago", [8, 30, 70])
def test_what_was_before_a_step_counts_at_the_new_level(factor: Decimal, ago: int) -> None:
    """Weekdays before a step are scaled to the new level, and no trend is assumed."""
    rng = random.Random(f"{factor} {ago}")
    days = _costs(rng, 150)
    daily = [cost * (factor if number >= 140 - ago else 1) for number, cost in enumerate(days)]
    found = _of(LAST, daily[:140], "USD")
    assert found is not None
    rest = sum(daily[140:], Decimal())
    assert abs(found.expected - found.actual - rest) < rest / 20


def test_what_has_just_begun_is_no_forecast() -> None:
    """Days before the first cost are not days without cost."""
    assert _of(LAST, [*[Decimal(0)] * 60, *[Decimal(7)] * 20], "USD") is None
    assert _of(LAST, [*[Decimal(0)] * 60, *[Decimal(7)] * 40], "USD").expected == 210  # type: ignore[union-attr]


def _errors(noise: float, grows: float, spikes: float) -> tuple[float, float]:
    """Return the total errors at the end of months, of the forecast and of the mean of seven days."""
    rng = random.Random(f"{noise} {grows} {spikes}")
    ours = naive = 0.0
    for _ in range(6):
        level, weekend = rng.uniform(20, 500), rng.uniform(0.5, 1)
        days = [date(2025, 1, 1) + timedelta(days=number) for number in range(365)]
        costs = [
            Decimal(
                str(
                    round(
                        level
                        * (1 + grows * number / 365)
                        * (weekend if day.weekday() > 4 else 1)
                        * math.exp(rng.gauss(0, noise))
                        * (2.5 if rng.random() < spikes else 1),
                        6,
                    )
                )
            )
            for number, day in enumerate(days)
        ]
        for number in (number for number, day in enumerate(days) if day.day == 10 and day.month > 4):
            known, left = costs[max(0, number - HISTORY) : number + 1], days_left(days[number])
            found = _of(days[number], known, "USD")
            assert found is not None
            true = sum(costs[number - 9 : number + left + 1], Decimal())
            mean = sum(known[-10:], Decimal()) + sum(known[-7:], Decimal()) / 7 * left
            ours += float(abs(found.expected - true) / true)
            naive += float(abs(mean - true) / true)
    return ours, naive


def days_left(day: date) -> int:
    """Return how many days of its month follow a day."""
    return (month_of(day).end - day).days - 1


def test_too_few_days_are_no_forecast() -> None:
    """There is no forecast at the end of a month, or without enough days to measure past errors."""
    assert _of(date(2026, 11, 30), STEADY, "USD") is None
    assert _of(LAST, STEADY[:32], "USD") is None
    assert _of(LAST, STEADY[:33], "USD") is not None
    assert _of(LAST, STEADY[:19], "USD") is None  # days of the month itself are missing


@given(st.lists(st.decimals(-(10**9), 10**9, places=12), min_size=33, max_size=98))
def test_the_interval_contains_what_is_expected(daily: list[Decimal]) -> None:
    """The interval contains the expected amount for all amounts, including refunds, unless costs began too late."""
    found = _of(LAST, daily, "USD")
    if found is None:
        assert len(History(_days(LAST, daily), daily).usual) < 33
        return
    assert found.low <= found.expected <= found.high


def test_a_monthly_fee_is_expected_on_its_day() -> None:
    """A monthly fee is expected on its day of the month and does not raise other days."""
    days = DayRange(date(2026, 9, 1), LAST + ONE_DAY)
    fees = {date(2026, month, day): Decimal(500) for month in (9, 10) for day in (25, 30)} | {
        date(2026, 11, 1): Decimal(90)
    }
    amounts = [Decimal(7) + fees.get(day, 0) for day in days]
    found = forecast(History(days, amounts, fees), "USD")
    assert found is not None
    assert found.expected == 90 + 30 * 7 + 1000
    assert (found.low, found.high) == (found.expected, found.expected)
    daily = daily_forecast(History(days, amounts, fees), date(2026, 12, 1), "USD")
    assert daily is not None
    assert [each.p50 for each in daily.points] == [7, 7, 7, 7, 507, 7, 7, 7, 7, 507, 97]
    assert (daily.wape, daily.bias, daily.coverage) == (0, 0, 1)


def test_each_day_to_come_has_its_interval() -> None:
    """Each interval contains eight of ten outcomes by past errors; weekends are cheaper."""
    rng = random.Random(5)
    days = DayRange(LAST - timedelta(days=89), LAST + ONE_DAY)
    found = daily_forecast(History(days, _costs(rng, 90)), LAST + timedelta(days=14), "USD")
    assert found is not None
    assert [each.date for each in found.points] == [LAST + timedelta(days=number) for number in range(1, 15)]
    assert all(each.p10 <= each.p50 <= each.p90 for each in found.points)
    assert 0.7 <= found.coverage <= 0.9
    assert found.wape is not None
    assert 0.02 <= found.wape <= 0.08
    assert (found.history_days, found.origins) == (90, 60)
    cheap = min(found.points, key=lambda each: each.p50)
    assert cheap.p50 < 80
    assert (
        daily_forecast(
            History(DayRange(LAST - timedelta(days=30), LAST + ONE_DAY), _costs(rng, 31)),
            LAST + timedelta(days=14),
            "USD",
        )
        is None
    )


def test_nothing_charged_is_off_by_no_part() -> None:
    """If nothing was charged, there are no relative errors."""
    days = DayRange(LAST - timedelta(days=59), LAST + ONE_DAY)
    found = daily_forecast(History(days, [Decimal(0)] * 60), LAST + ONE_DAY, "USD")
    assert found is not None
    assert (found.wape, found.bias, found.coverage) == (None, None, 1)
