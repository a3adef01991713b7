"""The quality and the speed of estimates on generated years: anomalies, and the end of a month.

The reference of anomalies is the textbook's rule: further than four deviations, by the median of absolute deviations of
the same weekdays, and by a fifth. The reference of the forecast is the mean of the last seven days; its floor is the
error of a forecast that knows everything but the future noise.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from statistics import median
from typing import Final

from benchmarks.measure import Figure
from benchmarks.years import DAYS, change, law, mean_of_noise, scattered, years
from chargeback.model.anomalies import FEWEST, WINDOW, Floors, stories
from chargeback.model.days import ONE_DAY, DayRange, month_of
from chargeback.reports.forecast import HISTORY, WEEK, History, forecast

_NOISES: Final = (0.05, 0.1, 0.2)
_YEARS: Final = 100
_SERIES: Final = 100_000
_OF: Final = 60
_FLOORS: Final = Floors()
_NORMAL: Final = 1.4826
#: The properties of generated years: their growth, the share of days with a spike, and whether they have a step.
_STORIES: Final = {
    "scatters": (0.0, 0.0, False),
    "has spikes": (0.0, 0.02, False),
    "grows by half": (0.5, 0.0, False),
    "has had a step": (0.0, 0.0, True),
}
_STEPS: Final = (0.5, 1.5, 2, 4)
#: The number of days after a step on which forecasts are compared.
_AFTER_STEP: Final = 110


def estimates() -> Iterator[Figure]:
    """Measure quality and speed."""
    for noise in _NOISES:
        yield from _detection(noise)
    yield _speed()
    for noise in _NOISES:
        for name in _STORIES:
            yield _month_end(noise, name)


def _detection(noise: float) -> Iterator[Figure]:
    group = f"stands out, {noise:.0%} noise"
    months = _YEARS * (len(DAYS) - FEWEST) / 30.4
    quiet = [costs for _, costs in years(_YEARS, noise)]
    ours = sum(len(stories(costs, DAYS, _FLOORS, DAYS[0])) for costs in quiet)
    textbook = sum(len(_textbook(costs)) for costs in quiet)
    note = f"{_YEARS} years of a series to which nothing happens"
    yield Figure(
        group,
        "false alarms in 100 series-months",
        ours / months * 100,
        "",
        reference=textbook / months * 100,
        note=note,
    )
    for name, length in (("spikes", 1), ("steps", 90)):
        hits = known = 0
        for chance, costs in years(_YEARS, noise):
            day = change(chance, costs, noise, length)
            hits += any(story.days[0].day == day for story in stories(costs, DAYS, _FLOORS, DAYS[0]))
            known += day in _textbook(costs)
        note = "of five scales and more, found on their first day"
        yield Figure(
            group,
            f"{name} found",
            hits / _YEARS * 100,
            "%",
            reference=known / _YEARS * 100,
            more_is_better=True,
            note=note,
        )


def _textbook(costs: dict[date, float]) -> list[date]:
    found = []
    for number, day in enumerate(DAYS):
        same = [costs[each] for each in DAYS[max(0, number - WINDOW) : number] if each.weekday() == day.weekday()]
        if number < FEWEST:
            continue
        middle = median(same)
        deviation = _NORMAL * median(abs(cost - middle) for cost in same)
        away = abs(costs[day] - middle)
        if away > 4 * deviation and away > 0.2 * middle:
            found.append(day)
    return found


def _speed() -> Figure:
    chance = random.Random(1)
    days = DAYS[:_OF]
    few = [{day: 20 * chance.lognormvariate(0, 0.1) for day in days} for _ in range(_SERIES // 100)]
    start = time.perf_counter()
    for _ in range(100):
        for costs in few:
            stories(costs, days, _FLOORS, days[-28])
    taken = time.perf_counter() - start
    return Figure("stands out", f"{_SERIES:,} series of {_OF} days", taken, "s", note="10 % noise")


def _month_end(noise: float, name: str) -> Figure:
    grows, spikes, step = _STORIES[name]
    chance = random.Random(f"{noise} {name}")
    ours: list[float] = []
    naive: list[float] = []
    knowing: list[float] = []
    inside = 0
    for _ in range(_YEARS // 5):
        usual, place = law(chance, grows), 0
        if step:
            place = chance.randrange(60, 300)
            factor = chance.choice(_STEPS)
            usual = {day: cost * (1 if number < place else factor) for number, (day, cost) in enumerate(usual.items())}
        costs = [Decimal(str(round(cost, 6))) for cost in scattered(chance, usual, noise, spikes).values()]
        expected = [cost * mean_of_noise(noise, spikes) for cost in usual.values()]
        for number, day in enumerate(DAYS):
            if day.day != 10 or day.month < 5 or (step and not WEEK <= number - place <= _AFTER_STEP):
                continue
            month = month_of(day)
            known = costs[max(0, number - HISTORY) : number + 1]
            found = forecast(History(DayRange(day - timedelta(days=len(known) - 1), day + ONE_DAY), known), "USD")
            if found is None:
                raise RuntimeError("a forecast is missing")
            left = (month.end - day).days - 1
            true = float(sum(costs[number - 9 : number + 1 + left]))
            ours.append(abs(float(found.expected) - true) / true)
            actual = float(sum(known[-10:]))
            naive.append(abs(actual + float(sum(known[-7:])) / 7 * left - true) / true)
            knowing.append(abs(actual + sum(expected[number + 1 : number + 1 + left]) - true) / true)
            inside += float(found.low) <= true <= float(found.high)
    note = f"the interval holds {inside / len(ours):.0%}"
    return Figure(
        f"forecast, {noise:.0%} noise",
        f"{name}: error of the month on its tenth day",
        _mean(ours),
        "%",
        floor=_mean(knowing),
        reference=_mean(naive),
        note=note,
    )


def _mean(errors: Sequence[float]) -> float:
    return sum(errors) / len(errors) * 100
