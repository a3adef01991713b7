"""Anomalies in a daily series of costs: the method, independent of the source of the numbers.

A day is compared with the median of its weekday in the eight weeks before. The usual distance of days from their
medians is one robust scale of the whole series: 1.4826 × the median of the absolute residuals, or the scale that
follows from the mean of all but the furthest tenth, whichever is larger; widened by the uncertainty of a median of so
few days. A day stands out if it is four scales away, clearly further than all earlier days but one, and differs by at
least the floors, in percent and in money. These are estimates, and floats.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import log, sqrt
from statistics import fmean
from typing import Final, Literal

#: How many days are looked back on, how many are needed, and how many of them of the same weekday.
WINDOW: Final = 56
FEWEST: Final = 21
_FEWEST_OF_WEEKDAY: Final = 2
#: From how many scales on a day stands out, and how much further away it must be than the second furthest one.
_SCALES: Final = 4.0
_FURTHER: Final = 1.25
#: A series is never taken to be steadier than this.
_LEAST_SCALE: Final = 0.03
_NORMAL: Final = 1.4826
#: The same of the mean of all but the tenth that is furthest away: 0.9 / 2 / (φ(0) − φ(1.645)).
_NORMAL_MEAN: Final = 1.521
#: Nothing is as far from what is expected as this part of it.
_LEAST_PART: Final = 1e-6
_OF_A_MEDIAN: Final = 1.57
#: After how many consecutive days a deviation is the new level.
SHIFTED: Final = 3

#: In how many weeks in a row a weekday makes a habit.
_WEEK, _HABIT = 7, 3

#: The days of a drift: the last ones, and those before that they are compared with.
_LAST: Final = 7
_BEFORE: Final = 28

State = Literal["open", "resolved", "level_shift"]


@dataclass(frozen=True, slots=True)
class Floors:
    """What a day has to differ by at least, to matter: in the currency, and as a part of what is expected."""

    amount: float = 1.0
    part: float = 0.2


@dataclass(frozen=True)
class Criteria:
    """The criteria of anomalies: the floors; the cost category whose values are examined in addition to identities, by
    default the only one, if there is one; and the measure of usage that drives the costs of a product group, if known:
    costs that grow as much as their measure are growth, and not reported."""

    floors: Floors = Floors()
    category: str | None = None
    drivers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StandingOut:
    """A day that stands out: its cost, the expected cost, and the distance in scales."""

    day: date
    actual: float
    expected: float
    scales: float

    @property
    def rises(self) -> bool:
        """Whether it cost more than expected."""
        return self.actual > self.expected


@dataclass
class Story:
    """Consecutive days that stand out in one direction.

    Attributes:
        state: ``open`` while the last judged day stands out; ``level_shift`` once their costs have become the level.
    """

    days: list[StandingOut] = field(default_factory=list)
    state: State = "open"

    @property
    def rises(self) -> bool:
        """Whether more is spent than expected."""
        return self.days[0].rises

    @property
    def impact(self) -> float:
        """What was spent more than expected, on all days; negative if it was less."""
        return sum(each.actual - each.expected for each in self.days)


def stories(
    costs: Mapping[date, float],
    judged: Sequence[date],
    floors: Floors,
    since: date,
    aside: Collection[date] = (),
) -> list[Story]:
    """Return the stories of a series from a day on. ``judged`` are the complete days, ascending; those that ``costs``
    lacks had no cost. A series begins with its first cost: before it there is no usual level.

    Later days are not compared with days of a story; a new level begins a series of its own. Days that are put
    ``aside`` are neither, however many there are: a story begins or ends where they do. A deviation that comes again in
    the two following weeks is a habit and not a story: later days are compared with it.
    """
    found: list[Story] = []
    base, habits = _Base(), _Habits()
    current: Story | None = None
    was_aside = False
    begins = min(costs, default=date.max)
    for day in judged:
        if day < begins:
            continue
        cost, is_aside = costs.get(day, 0.0), day in aside
        away = base.standing_out(day, cost, floors)
        is_over = away is None or is_aside is not was_aside
        was_aside = is_aside
        if away is not None and not is_aside and habits.has(away):
            is_over, away = True, None
        if current is not None and (is_over or (away is not None and current.rises is not away.rises)):
            current.state = "resolved"
            current = None
        if away is None:
            if not is_aside:
                base.add(day, cost)
            continue
        if current is None:
            current = Story()
            found.append(current)
        current.days.append(away)
        if len(current.days) == SHIFTED and not is_aside:
            current.state = "level_shift"
            base = _Base()
            for each in current.days:
                base.add(each.day, each.actual)
            current = None
    return [each for each in found if each.days[-1].day >= since]


@dataclass(frozen=True, slots=True)
class Drift:
    """What a day of the last week costs, and of the four weeks before, by their medians."""

    before: float
    now: float


def drift(
    costs: Mapping[date, float], judged: Sequence[date], floors: Floors, aside: Collection[date] = ()
) -> Drift | None:
    """Return how a series has moved without any day of it standing out; None if it has not by as much as matters, or
    too few days of it are known."""
    begins = min(costs, default=date.max)
    known = [costs.get(day, 0.0) for day in judged if day >= begins and day not in aside]
    if len(known) < _LAST + FEWEST:
        return None
    found = Drift(_median(known[-_LAST - _BEFORE : -_LAST]), _median(known[-_LAST:]))
    return found if abs(found.now - found.before) >= max(floors.amount, floors.part * found.before) else None


class _Habits:
    """Days that stood out, by their weekday: a deviation of the same direction and no larger, for the third week in a
    row, is the usual cost of its weekday. Otherwise a weekday with few known days could stand out for ever."""

    def __init__(self) -> None:
        self._in_a_row: dict[int, list[StandingOut]] = {}

    def has(self, found: StandingOut) -> bool:
        """Return whether a day is one of a habit."""
        before = self._in_a_row.get(found.day.weekday(), [])
        if before and not _comes_again(before[-1], found):
            before = []
        self._in_a_row[found.day.weekday()] = [*before, found]
        return len(before) >= _HABIT - 1


def _comes_again(before: StandingOut, found: StandingOut) -> bool:
    """Return whether a day is like that of a week before, or nearer to what is usual."""
    if (found.day - before.day).days != _WEEK or before.rises is not found.rises:
        return False
    least, most = sorted((before.actual, found.actual))
    return most <= _FURTHER * least or (found.actual < before.actual) is found.rises


class _Base:
    """What days are compared with: the costs of the known days of the eight weeks before, those of each weekday sorted,
    so that their median is in their middle."""

    def __init__(self) -> None:
        self._days: deque[tuple[int, float]] = deque()
        self._weekdays: list[list[float]] = [[] for _ in range(7)]

    def add(self, day: date, cost: float) -> None:
        """Add a day, which is later than all others."""
        number = day.toordinal()
        self._days.append((number, cost))
        insort(self._weekdays[number % 7], cost)

    def standing_out(self, day: date, actual: float, floors: Floors) -> StandingOut | None:
        """Return how far a later day stands out; None if it does not, or too few days are known."""
        number, known = day.toordinal(), self._days
        while known and known[0][0] < number - WINDOW:
            earliest, cost = known.popleft()
            self._weekdays[earliest % 7].remove(cost)
        same = self._weekdays[number % 7]
        if len(known) < FEWEST or len(same) < _FEWEST_OF_WEEKDAY:
            return None
        expected = _middle(same)
        # The cheap questions first: most days of most series end here.
        differs = abs(actual - expected)
        if expected <= 0 or differs < floors.part * expected or differs < floors.amount:
            return None
        residuals = self._residuals()
        days = len(same)
        # A day is nearer to a median that it is a part of, and further from one that it is not.
        usual = max(_NORMAL * _middle(residuals), _NORMAL_MEAN * fmean(residuals[: len(residuals) * 9 // 10]))
        scale = max(_LEAST_SCALE, usual * sqrt(days / (days - 1) * (1 + _OF_A_MEDIAN / days)))
        away = _away(actual, expected)
        second = residuals[-2] if len(residuals) > 1 else 0.0
        if away < _SCALES * scale or away <= _FURTHER * second:
            return None
        return StandingOut(day, actual, expected, away / scale)

    def _residuals(self) -> list[float]:
        """Return how far each day is from the median of its weekday, ascending."""
        residuals: list[float] = []
        for costs in self._weekdays:
            if costs and (middle := _middle(costs)) > 0:
                least = middle * _LEAST_PART
                residuals += [abs(log((cost if cost > least else least) / middle)) for cost in costs]
        return sorted(residuals)


def _away(cost: float, expected: float) -> float:
    """Return the absolute logarithm of the ratio of a cost to a positive one; half and double give the same."""
    return abs(log(max(cost, expected * _LEAST_PART) / expected))


def _median(values: Iterable[float]) -> float:
    return _middle(sorted(values))


def _middle(ordered: Sequence[float]) -> float:
    """Return the median of sorted values: their middle, or the mean of the two that are in the middle."""
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2
