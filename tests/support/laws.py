"""How many examples a law is tried with: few in the everyday run, some in the whole one, all of them in the drills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import pytest
from hypothesis import settings

#: The name of the everyday run: of the option, of its profile of Hypothesis, and of the marker of tests that it keeps.
EVERYDAY: Final = "everyday"
#: The name of the profile of the whole run.
WHOLE: Final = "whole"
#: The name of the profile of the drills, which try every example.
THOROUGH: Final = "thorough"
#: The name of the marker of cases that only the whole run has.
EXTENSIVE: Final = "extensive"
#: How many cases of a slow test the everyday run has.
EVERYDAY_CASES: Final = 4

_Case = TypeVar("_Case")
#: One of how many examples the profiles of Hypothesis have.
_PARTS: Final = {EVERYDAY: 8, WHOLE: 5, THOROUGH: 1}
_FEWEST: Final = 2


def examples(number: int) -> int:
    """Return how many of ``number`` examples of a law are tried in this run."""
    return min(number, max(_FEWEST, number // _PARTS[settings.get_current_profile_name()]))


def one_first(values: Iterable[object]) -> list[object]:
    """Return the values of a parameter: the everyday run has only the first one."""
    return first_of(*((value,) for value in values))


def first_of(*cases: Iterable[object]) -> list[object]:
    """Return the parameters of cases of one law: the everyday run has only the first one."""
    return [pytest.param(*case, marks=[pytest.mark.extensive] if number else []) for number, case in enumerate(cases)]


def evenly_spread(cases: Sequence[_Case], number: int) -> list[_Case]:
    """Return at most ``number`` of the cases, the first one among them.

    >>> evenly_spread(range(10), 4)
    [0, 2, 5, 7]
    """
    if len(cases) <= number:
        return list(cases)
    return [cases[position * len(cases) // number] for position in range(number)]
