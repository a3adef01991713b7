"""A forecast says what its method says, and how far off that has been."""

from __future__ import annotations

import math
import random
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.days import month_of
from chargeback.reports.forecast import HISTORY, forecast

LAST = date(2026, 11, 20)  # ten days are left
STEADY = [Decimal(7)] * 60


def test_what_is_steady_is_certain() -> None:
    """Without any change the month is known to the cent."""
    found = forecast(LAST, STEADY, "USD")
    assert found is not None
    assert (found.until, found.actual_to, found.actual) == (date(2026, 11, 30), LAST, Decimal(140))
    assert found.expected == found.low == found.high == 210
    assert "median of its weekday in the last 4 weeks" in found.method
    assert "37 earlier stretches of 10 days" in found.method


def test_the_last_week_decides() -> None:
    """Once most of the last seven days cost something else, the days to come do, too."""
    found = forecast(LAST, [*STEADY, *[Decimal(14)] * 7], "USD")
    assert found is not None
    assert found.expected == 13 * 7 + 7 * 14 + 140
    assert found.low <= found.expected <= found.high
    assert found.high > found.expected


def _costs(rng: random.Random, days: int) -> list[Decimal]:
    """The costs of days up to a Friday, less at weekends, each a little more or less than usual."""
    weekday = (100, 70, 60, 100, 100, 100, 100)
    return [Decimal(round(weekday[day % 7] * rng.gauss(1, 0.05), 2)).quantize(Decimal("0.01")) for day in range(days)]


def _rest_lies_inside(last: date, daily: list[Decimal], rest: list[Decimal]) -> bool:
    found = forecast(last, daily, "USD")
    assert found is not None
    return found.low <= found.actual + sum(rest) <= found.high


@pytest.mark.parametrize("last", [date(2026, 11, 3), date(2026, 11, 10), LAST, date(2026, 11, 26)])
@pytest.mark.parametrize("before", [0, 1, 3, 9, 20])
def test_after_a_spike_a_usual_rest_of_the_month_is_inside(last: date, before: int) -> None:
    """However many days ago it was, and however much of the month is left: eight of ten times or more."""
    rng = random.Random(f"{last} {before}")
    left = 30 - last.day
    inside = 0
    for _ in range(40):
        days = _costs(rng, 75 + left)
        daily, rest = days[:75], days[75:]
        daily[-1 - before] *= 12
        inside += _rest_lies_inside(last, daily, rest)
    assert inside >= 28


def test_a_spike_is_not_expected_again() -> None:
    """It changes what is expected by less than a tenth of itself, even if it was yesterday."""
    usual, spiked = (forecast(LAST, [*STEADY[:-1], cost], "USD") for cost in (Decimal(7), Decimal(700)))
    assert usual is not None
    assert spiked is not None
    assert spiked.expected - spiked.actual == usual.expected - usual.actual
    assert spiked.low <= spiked.actual + 70 <= spiked.high


def test_eight_of_ten_months_end_inside() -> None:
    """Of what is usual, with a spike on one day of twenty: neither hardly ever nor always."""
    rng = random.Random(7)
    inside = 0
    for _ in range(100):
        days = [cost * (5 if rng.random() < 0.05 else 1) for cost in _costs(rng, 100)]
        inside += _rest_lies_inside(LAST, days[:90], days[90:])
    assert 70 <= inside <= 95


def test_it_beats_the_mean_of_the_last_week() -> None:
    """On the tenth of a month, of years that scatter or have days that stand out: by three tenths on average. Where
    costs grow by half in a year, the last week is nearly a fifth better at most."""
    steady = [_errors(noise, 0, spikes) for noise in (0.05, 0.1, 0.2) for spikes in (0, 0.02)]
    growing = [_errors(noise, 0.5, 0) for noise in (0.05, 0.1, 0.2)]
    assert sum(ours for ours, _ in steady) <= 0.7 * sum(naive for _, naive in steady)
    assert sum(ours for ours, _ in growing) <= 1.2 * sum(naive for _, naive in growing)


def _errors(noise: float, grows: float, spikes: float) -> tuple[float, float]:
    """How far months were off in all at their end, by the forecast and by the mean of seven days."""
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
            found = forecast(days[number], known, "USD")
            assert found is not None
            true = sum(costs[number - 9 : number + left + 1], Decimal())
            mean = sum(known[-10:], Decimal()) + sum(known[-7:], Decimal()) / 7 * left
            ours += float(abs(found.expected - true) / true)
            naive += float(abs(mean - true) / true)
    return ours, naive


def days_left(day: date) -> int:
    """How many days of its month follow a day."""
    return (month_of(day).end - day).days - 1


def test_too_few_days_are_no_forecast() -> None:
    """Neither at the end of a month, nor without enough days to know the errors of the past."""
    assert forecast(date(2026, 11, 30), STEADY, "USD") is None
    assert forecast(LAST, STEADY[:32], "USD") is None
    assert forecast(LAST, STEADY[:33], "USD") is not None
    assert forecast(LAST, STEADY[:19], "USD") is None  # the month itself is not whole


@given(st.lists(st.decimals(-(10**9), 10**9, places=12), min_size=33, max_size=98))
def test_the_interval_contains_what_is_expected(daily: list[Decimal]) -> None:
    """Whatever was spent, refunds included."""
    found = forecast(LAST, daily, "USD")
    assert found is not None
    assert found.low <= found.expected <= found.high
