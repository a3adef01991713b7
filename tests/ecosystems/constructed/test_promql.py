"""The few parts of PromQL that are generated or inspected."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chargeback.ecosystems.constructed.promql import foreign_ranges, mentions, select, with_step

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("series", "matchers", "expected"),
    [
        ("bytes", (), "bytes"),
        ("bytes", ("", ""), "bytes"),
        ("bytes", ('job="kafka"', 'topic!=""'), 'bytes{job="kafka",topic!=""}'),
        ('bytes{tier="a"}', ('job="kafka"',), 'bytes{tier="a",job="kafka"}'),
        ('bytes { tier="a", } ', (), 'bytes{tier="a"}'),
        ("bytes{}", ('job="kafka"',), 'bytes{job="kafka"}'),
        ('bytes{path="a,b{c}"}', (), 'bytes{path="a,b{c}"}'),
    ],
)
def test_selectors_are_narrowed(series: str, matchers: tuple[str, ...], expected: str) -> None:
    """The metric's own matchers come first, then ours."""
    assert select(series, *matchers) == expected


@pytest.mark.parametrize(
    ("series", "mentioned"),
    [
        ("bytes", False),
        ('bytes{topic=""}', True),
        ('bytes{job="x", topic!~"_.*"}', True),
        ('bytes{subtopic="x"}', False),
        ('bytes{job="topic=1"}', False),
    ],
)
def test_a_label_is_mentioned_only_by_a_matcher(series: str, mentioned: bool) -> None:
    """A label counts only in a matcher, not within a value or another name."""
    assert mentions(series, "topic") is mentioned


def test_the_placeholder_becomes_the_step() -> None:
    """Every placeholder of a query is replaced."""
    assert with_step("increase(a[{step}]) + increase(b[{step}])", timedelta(minutes=15)) == (
        "increase(a[900s]) + increase(b[900s])"
    )


@pytest.mark.parametrize(
    ("query", "foreign"),
    [
        ("sum(increase(x[{step}]))", []),
        ("sum(increase(x[1h]))", []),
        ("sum(increase(x[60m]))", []),
        ("sum(increase(x[30m30m]))", []),
        ("sum(increase(x[3600]))", []),
        ("sum(increase(x[ 5m ]))", ["5m"]),
        ("sum(increase(x[1d])) + rate(y[1h])", ["1d"]),
        ("sum(increase(x[500ms]))", ["500ms"]),
        ("sum(increase(x[1fortnight]))", ["1fortnight"]),
        ("sum(x)", []),
        ('sum(increase(x{t=~"[5m]"}[1h]))', []),
        ("max_over_time(rate(x[{step}])[1d:5m])", []),
    ],
)
def test_ranges_of_another_length_are_noticed(query: str, foreign: list[str]) -> None:
    """A range that is not equal to the step is reported as written; strings and subqueries are ignored."""
    assert foreign_ranges(query, HOUR) == foreign
