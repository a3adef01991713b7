"""Figures, and how they are measured."""

from __future__ import annotations

from dataclasses import asdict, replace

from benchmarks.measure import NOMINAL_YARDSTICK_MS, Figure, memory_mib, percentile, yardstick


def test_slowness_is_that_of_the_yardstick() -> None:
    """Slowness is the time of a fixed piece of work relative to the nominal one; a fast or unmeasured machine is
    nominal."""
    figure = Figure("g", "n", 50, "ms")
    assert figure.slowness == 1
    assert replace(figure, yardstick=NOMINAL_YARDSTICK_MS * 3).slowness == 3
    assert replace(figure, yardstick=NOMINAL_YARDSTICK_MS / 2).slowness == 1
    assert yardstick() > 0


def test_figures_of_other_versions_are_read() -> None:
    """Unknown fields of an earlier or later version are ignored."""
    figure = Figure("g", "n", 50, "ms", floor=40)
    assert Figure.from_json({**asdict(figure), "bar": 150.0}) == figure


def test_percentiles() -> None:
    """A percentile is the smallest value that this share of the values does not exceed."""
    values = [float(value) for value in range(100, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([7.0], 0.99)) == (51.0, 100.0, 7.0)


def test_memory_of_this_process() -> None:
    """The peak is never below the currently resident memory."""
    assert 0 < memory_mib() <= memory_mib(peak=True)
