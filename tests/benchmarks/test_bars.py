"""Bars are ratios to figures of the same run: the speed of the machine does not change the result."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isclose

import pytest
from benchmarks.bars import Bar, Judgement, judge
from benchmarks.measure import NOMINAL_YARDSTICK_MS, Figure
from benchmarks.report import RESULTS

_PER_SECOND = ("rows/s", "1/s")
_TIMES = ("ms", "s")


def _figure(key: str, value: float, unit: str = "ms", floor: float | None = None, **others: float) -> Figure:
    group, _, name = key.partition(" / ")
    reference = others.get("reference")
    return Figure(group, name, value, unit, floor, reference, unit in _PER_SECOND, yardstick=others.get("yardstick"))


def _verdicts(figures: list[Figure]) -> list[tuple[str, str, bool]]:
    """Return whether each figure reaches each of its bars, but for one that is exactly at it: rounding decides that."""
    judged = [each for each in judge(figures) if not isclose(each.figure.value, each.bar.limit, rel_tol=1e-9)]
    return [(each.figure.key, each.bar.of, each.is_met) for each in judged]


def _slower(figure: Figure, factor: float) -> Figure:
    """Return the figure as a machine of another speed would have measured it."""
    if figure.unit not in (*_TIMES, *_PER_SECOND):
        return figure
    factor = 1 / factor if figure.unit in _PER_SECOND else factor
    return replace(
        figure,
        value=figure.value * factor,
        floor=figure.floor and figure.floor * factor,
        reference=figure.reference and figure.reference * factor,
    )


@pytest.mark.parametrize("factor", [1.5, 2, 5])
def test_a_slower_machine_changes_no_verdict(factor: float) -> None:
    """A bar that is met or missed on a machine of nominal speed is also met or missed on a slower one."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["figures"]
    nominal = [replace(Figure.from_json(each), yardstick=NOMINAL_YARDSTICK_MS) for each in kept]
    slower = [replace(_slower(each, factor), yardstick=NOMINAL_YARDSTICK_MS * factor) for each in nominal]
    assert _verdicts(slower) == _verdicts(nominal)
    assert len(_verdicts(nominal)) > 100


def test_a_bar_is_an_upper_or_a_lower_limit() -> None:
    """Times must not exceed their bar, rates must reach it."""
    bar = Bar("floor", 2, 20, margin=10)
    for value, is_met in ((50, True), (50.1, False)):
        assert Judgement(_figure("g / n", value), bar).is_met is is_met
    for value, is_met in ((50, True), (49.9, False)):
        assert Judgement(_figure("g / n", value, "1/s"), bar).is_met is is_met


def test_the_text_of_a_bar_names_its_terms() -> None:
    """The text shows the ratio and the resulting limit in this run; a size is a plain limit."""
    assert Bar("floor", 1.3, 40, margin=8).text(_figure("g / n", 1)) == "≤ 1.3 × floor + 8 ms = 60.0"
    assert Bar("reference", 5, 200).text(_figure("g / n", 1, "rows/s")) == "≥ 5 × reference = 1,000"
    assert Bar("", 1536, 1).text(_figure("g / n", 1, "MiB")) == "≤ 1,536 MiB"


def test_margins_hold_for_a_machine_of_nominal_speed() -> None:
    """The margin grows with the yardstick on a slower machine and does not shrink on a faster one."""
    key = "list, usual / first page"
    limits = [
        judge([_figure(key, 1, floor=10, yardstick=NOMINAL_YARDSTICK_MS * factor)])[0].bar.limit
        for factor in (0.5, 1, 2)
    ]
    assert limits == [21, 21, 29]


def test_bars_compare_figures_of_the_run() -> None:
    """A zone is compared with UTC, a page of ten million rows with that of a small tenant, a rate with /health."""
    zone, utc = (
        "aggregate, usual / by identity_id and day, all, America/Denver",
        "aggregate, usual / by identity_id and day, all",
    )
    figures = [
        _figure(zone, 31),
        _figure(utc, 20),
        _figure("list, large / middle page", 14),
        _figure("list, usual / middle page", 10),
        _figure("requests, usual / tenants, 8 clients", 199, "1/s"),
        _figure("requests, usual / health, 8 clients", 1000, "1/s"),
    ]
    assert _verdicts(figures) == [
        (zone, "UTC", False),
        ("list, large / middle page", "usual", True),
        ("requests, usual / tenants, 8 clients", "/health", False),
    ]


def test_without_a_base_there_is_no_bar() -> None:
    """A figure without a floor, or whose base was not measured, has no bar."""
    assert (
        judge([_figure("list, usual / first page", 9), _figure("requests, usual / tenants, 8 clients", 1, "1/s")]) == []
    )


def test_what_was_asked_before_costs_a_tenth() -> None:
    """A cached response may take a tenth of the uncached time plus a few ms; uncached requests have no bar."""
    figures = [
        _figure("dashboard, large / costs, uncached", 500),
        _figure("dashboard, large / costs, cached", 57, reference=500),
        _figure("dashboard, large / costs, 304", 63, reference=500),
    ]
    verdicts = _verdicts(figures)
    assert verdicts == [(figures[1].key, "reference", True), (figures[2].key, "reference", False)]
