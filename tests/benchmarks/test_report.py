"""A run of the benchmarks is compared with the one before."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from benchmarks.measure import Figure
from benchmarks.report import document, regressions

_LIST = Figure("list", "first page", 20.0, "ms", floor=10.0)
_EXPORT = Figure("export", "rows", 1_000_000.0, "rows/s", floor=2_000_000.0, more_is_better=True)


def test_what_is_kept_can_be_compared() -> None:
    """The document contains the measured figures, and equal figures are not a regression."""
    kept = document([_LIST, _EXPORT], quick=True)
    assert kept["figures"] == [asdict(_LIST), asdict(_EXPORT)]
    assert regressions([_LIST, _EXPORT], kept) == []


def test_a_slower_answer_is_named() -> None:
    """Clearly more time, or clearly fewer rows per second, with the same floor is a regression."""
    slower = [replace(_LIST, value=40.0), replace(_EXPORT, value=500_000.0)]
    found = regressions(slower, document([_LIST, _EXPORT], quick=False))
    assert found == [
        "list / first page: 40.0 ms, was 20.0 (2.0 × worse)",
        "export / rows: 500,000 rows/s, was 1,000,000 (2.0 × worse)",
    ]


def test_a_slower_machine_is_not() -> None:
    """If the floor is slower by the same factor, it is not a regression."""
    slower = [replace(_LIST, value=40.0, floor=20.0), replace(_EXPORT, value=500_000.0, floor=1_000_000.0)]
    assert regressions(slower, document([_LIST, _EXPORT], quick=False)) == []


def test_without_a_floor_the_yardstick_is_compared() -> None:
    """A time without a floor is compared by its ratio to the yardstick; without a yardstick it is not compared."""
    before = Figure("small", "dates", 20.0, "ms", yardstick=4.0)
    kept = document([before], quick=False)
    assert regressions([replace(before, value=40.0, yardstick=8.0)], kept) == []
    assert regressions([replace(before, value=40.0)], kept) == ["small / dates: 40.0 ms, was 20.0 (2.0 × worse)"]
    assert regressions([replace(before, value=40.0, yardstick=None)], kept) == []


@pytest.mark.parametrize("unit", ["MiB", "kB", "requests", "%", ""])
def test_what_has_no_speed_is_compared_whatever_the_machine(unit: str) -> None:
    """Sizes, counts and shares are compared directly, because they do not depend on the speed of the machine."""
    before = Figure("calculate", "peak", 300.0, unit, yardstick=40.0)
    kept = document([before], quick=False)
    found = regressions([replace(before, value=600.0, yardstick=80.0)], kept)
    assert found == [f"calculate / peak: 600 {unit}, was 300 (2.0 × worse)"]
    assert regressions([replace(before, yardstick=4.0)], kept) == []


def test_new_figures_have_nothing_to_be_compared_with() -> None:
    """A figure that the earlier run does not have is not compared."""
    assert regressions([_LIST], document([_EXPORT], quick=False)) == []
