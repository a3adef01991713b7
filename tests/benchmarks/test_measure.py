"""Figures and their bars."""

from __future__ import annotations

from benchmarks.measure import Figure, memory_mib, percentile


def test_a_bar_is_an_upper_or_a_lower_limit() -> None:
    """Times must not exceed their bar, rates must reach it; without a bar nothing is said."""
    assert Figure("g", "n", 50, "ms", bar=50).meets_bar is True
    assert Figure("g", "n", 51, "ms", bar=50).meets_bar is False
    assert Figure("g", "n", 51, "1/s", bar=50, more_is_better=True).meets_bar is True
    assert Figure("g", "n", 49, "1/s", bar=50, more_is_better=True).meets_bar is False
    assert Figure("g", "n", 49, "ms").meets_bar is None


def test_what_the_service_may_add_to_its_floor() -> None:
    """One and a half times the floor and ten milliseconds."""
    assert Figure("g", "n", 25, "ms", floor=10).is_near_floor is True
    assert Figure("g", "n", 25.1, "ms", floor=10).is_near_floor is False
    assert Figure("g", "n", 25, "ms").is_near_floor is None


def test_percentiles() -> None:
    """So many of the values are at most that."""
    values = [float(value) for value in range(100, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([7.0], 0.99)) == (51.0, 100.0, 7.0)


def test_memory_of_this_process() -> None:
    """The peak is never below what is resident now."""
    assert 0 < memory_mib() <= memory_mib(peak=True)
