"""Generated years of daily costs: a trend, a weekly pattern, and noise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from math import exp
from typing import Final

START: Final = date(2025, 1, 1)
DAYS: Final = [START + timedelta(number) for number in range(365)]


#: The factor of the cost of a day with a spike.
_SPIKE: Final = 2.5


def law(chance: random.Random, grows: float = 0.0) -> dict[date, float]:
    """Return the daily costs, without noise, of a year in which they grow by a given fraction."""
    level = chance.uniform(20, 500)
    week = [1, 1, 1.02, 1, 0.98, chance.uniform(0.5, 1), chance.uniform(0.5, 1)]
    return {day: level * (1 + grows * number / len(DAYS)) * week[day.weekday()] for number, day in enumerate(DAYS)}


def scattered(chance: random.Random, usual: dict[date, float], noise: float, spikes: float = 0.0) -> dict[date, float]:
    """Return the costs of such a year with noise, some days of which have a spike."""
    return {
        day: cost * exp(chance.gauss(0, noise)) * (_SPIKE if spikes and chance.random() < spikes else 1)
        for day, cost in usual.items()
    }


def mean_of_noise(noise: float, spikes: float = 0.0) -> float:
    """Return the mean ratio of costs with noise to those without."""
    return exp(noise**2 / 2) * (1 + spikes * (_SPIKE - 1))


def years(count: int, noise: float) -> Iterator[tuple[random.Random, dict[date, float]]]:
    """Yield some years, each with the random generator for its changes."""
    chance = random.Random(f"years {noise}")
    for _ in range(count):
        yield chance, scattered(chance, law(chance), noise)


def change(chance: random.Random, costs: dict[date, float], noise: float, length: int) -> date:
    """Raise or lower some consecutive days by at least five scales; return the first of them."""
    day = DAYS[chance.randrange(100, 270)]
    size = max(5 * noise * 1.17, 0.25) + chance.random() * 0.7
    factor = exp(size if chance.random() < 0.7 else -size - 0.2)
    for each in range(length):
        costs[day + timedelta(each)] *= factor
    return day
