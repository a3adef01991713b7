"""Daily costs at their present level: what was before a step counts as if the step had come before it.

A step is where the median of two weeks differs from that of the four weeks before by a tenth, and by four times what
such medians usually differ by from noise alone. Estimates decide where it is; amounts stay whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import median, median_high
from typing import Final

_WEEK: Final = 7
#: The days after and before a step, and how many are needed at least.
_AFTER, _BEFORE = 2 * _WEEK, 4 * _WEEK
_FEWEST_AFTER, _FEWEST_BEFORE = 5, 2 * _WEEK
#: By how much a step differs at least, as a logarithm, and in units of what medians differ by.
_LEAST, _UNITS = 0.1, 4.0
#: A series is never taken to be steadier than this.
_STEADIEST: Final = 0.01
#: A median of many days is that much less sure than their mean, and a difference of two days than one of them.
_OF_A_MEDIAN: Final = 1.25
_NORMAL: Final = 1.4826 / sqrt(2)
#: Nothing is a smaller part of what is usual than this; what rises a thousandfold begins anew.
_LEAST_PART: Final = 1e-6
_BEGINS: Final = log(1000)
_MOST_STEPS: Final = 5
_SCALE: Final = 20


@dataclass(frozen=True, slots=True)
class _Step:
    """Where a step is, by which logarithm of a ratio, and how sure that is."""

    place: int
    change: float
    units: float


def at_present_level(costs: Sequence[int]) -> Sequence[int]:
    """Return daily costs, the last one being of the present, as they would have been without steps. What was before the
    first cost, or before something began anew, is left out.

    >>> at_present_level([0, 0, *[10] * 28, *[20] * 14])[:2]
    [20, 20]
    """
    first = next((number for number, cost in enumerate(costs) if cost), 0)
    found = list(costs[first:])
    for _ in range(_MOST_STEPS):
        step = _surest_step(found)
        if step is None:
            break
        if step.change > _BEGINS:
            found = found[step.place :]
        else:
            factor = round(exp(step.change) * (1 << _SCALE))
            found[: step.place] = [(cost * factor) >> _SCALE for cost in found[: step.place]]
    return found


def _surest_step(costs: Sequence[int]) -> _Step | None:
    middle = median(costs) if costs else 0
    if middle <= 0 or len(costs) < _FEWEST_BEFORE + _FEWEST_AFTER:
        return None
    least = middle * _LEAST_PART
    usual = [max(least, median(costs[weekday::_WEEK])) for weekday in range(_WEEK)]
    levels = [log(max(cost, least) / usual[number % _WEEK]) for number, cost in enumerate(costs)]
    apart = sorted(abs(later - earlier) for earlier, later in zip(levels, levels[_WEEK:], strict=False))
    noise = max(_STEADIEST, _NORMAL * apart[len(apart) // 2])
    found: _Step | None = None
    for place in range(_FEWEST_BEFORE, len(levels) - _FEWEST_AFTER + 1):
        after, before = levels[place : place + _AFTER], levels[max(0, place - _BEFORE) : place]
        change = median_high(after) - median_high(before)
        if abs(change) < _LEAST:
            continue
        usually = noise * _OF_A_MEDIAN * sqrt(1 / len(after) + 1 / len(before))
        units = abs(change) / usually
        if units > _UNITS and (found is None or units > found.units):
            found = _Step(place, change, units)
    return found
