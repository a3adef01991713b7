"""The number of examples of a property: few in the everyday run, some in the complete run, all in the drills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import pytest
from hypothesis import settings

#: The name of the everyday run: of the option, the Hypothesis profile, and the marker of tests that it includes.
EVERYDAY: Final = "everyday"
#: The name of the profile of the complete run.
WHOLE: Final = "whole"
#: The name of the profile of the drills, which use every example.
THOROUGH: Final = "thorough"
#: The name of the marker of cases that only the complete run includes.
EXTENSIVE: Final = "extensive"
#: The number of cases of a slow test in the everyday run.
EVERYDAY_CASES: Final = 4

_Case = TypeVar("_Case")
#: For each Hypothesis profile, the divisor of the number of examples.
_PARTS: Final = {EVERYDAY: 8, WHOLE: 5, THOROUGH: 1}
_FEWEST: Final = 2


def examples(number: int) -> int:
    """Return how many of ``number`` examples of a property are used in this run."""
    return min(number, max(_FEWEST, number // _PARTS[settings.get_current_profile_name()]))


def one_first(values: Iterable[object]) -> list[object]:
    """Return the values of a parameter; the everyday run includes only the first one."""
    return first_of(*((value,) for value in values))


def first_of(*cases: Iterable[object]) -> list[object]:
    """Return the parameters of cases of one property; the everyday run includes only the first one."""
    return [pytest.param(*case, marks=[pytest.mark.extensive] if number else []) for number, case in enumerate(cases)]


def evenly_spread(cases: Sequence[_Case], number: int) -> list[_Case]:
    """Return at most ``number`` of the cases, including the first one.

    >>> evenly_spread(range(10), 4)
    [0, 2, 5, 7]
    """
    if len(cases) <= number:
        return list(cases)
    return [cases[position * len(cases) // number] for position in range(number)]
