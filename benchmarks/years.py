"""Generated years of daily costs: a level, a week, and noise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from math import exp
from typing import Final

START: Final = date(2025, 1, 1)
DAYS: Final = [START + timedelta(number) for number in range(365)]


def year(chance: random.Random, noise: float, *, grows: float = 0.0, spikes: float = 0.0) -> dict[date, float]:
    """Return the costs of a year that grows by a part of itself, and of which a part of the days stands out."""
    level = chance.uniform(20, 500)
    week = [1, 1, 1.02, 1, 0.98, chance.uniform(0.5, 1), chance.uniform(0.5, 1)]
    return {
        day: level
        * (1 + grows * number / len(DAYS))
        * week[day.weekday()]
        * exp(chance.gauss(0, noise))
        * (2.5 if spikes and chance.random() < spikes else 1)
        for number, day in enumerate(DAYS)
    }


def years(count: int, noise: float) -> Iterator[tuple[random.Random, dict[date, float]]]:
    """Yield some years, and the chance for what is done to them."""
    chance = random.Random(f"years {noise}")
    for _ in range(count):
        yield chance, year(chance, noise)


def change(chance: random.Random, costs: dict[date, float], noise: float, length: int) -> date:
    """Let some days in a row cost five scales more, or less; return the first of them."""
    day = DAYS[chance.randrange(100, 270)]
    size = max(5 * noise * 1.17, 0.25) + chance.random() * 0.7
    factor = exp(size if chance.random() < 0.7 else -size - 0.2)
    for each in range(length):
        costs[day + timedelta(each)] *= factor
    return day
