"""The little grammar of queries."""

from __future__ import annotations

import pytest

from chargeback.demo.prometheus import Aggregate, Number, OverTime, Selector, duration_ms, parse
from chargeback.errors import SourceRejected


def test_the_services_query_is_understood() -> None:
    """Aggregation, range function and matchers come out as written, with "by" before or behind."""
    before = parse('sum by (a, b) (sum_over_time(m{x="1", y=~"p|q", z!=""}[1d12h]))')
    behind = parse('sum(sum_over_time(m{x="1",y=~"p|q",z!="",}[36h])) by (a,b)')
    for query in (before, behind):
        assert isinstance(query, Aggregate)
        assert (query.operation, query.by) == ("sum", ("a", "b"))
        assert isinstance(query.inner, OverTime)
        assert query.inner.range_ms == 36 * 3_600_000
        matchers = query.inner.selector.matchers
        assert [(one.label, one.sign, one.text) for one in matchers] == [
            ("x", "=", "1"), ("y", "=~", "p|q"), ("z", "!=", ""),
        ]  # fmt: skip


def test_regular_expressions_match_the_whole_value() -> None:
    """Alternatives are anchored at both ends; quotes and backslashes may be escaped."""
    query = parse(r'm{a=~"x|y.*",b!~"z",c="q\"\\"}')
    assert isinstance(query, Selector)
    first, second, third = query.matchers
    assert [first.matches(text) for text in ("x", "xx", "yes")] == [True, False, True]
    assert [second.matches(text) for text in ("z", "zz")] == [False, True]
    assert third.matches('q"\\')


def test_numbers_are_queries() -> None:
    """A bare number is a scalar."""
    assert parse("1.5") == Number(parse("1.5").value)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("rate(m[5m])", '"rate"'),
        ("sum without (a) (m)", '"without"'),
        ("m / 2", '"/ 2"'),
        ("m offset 1d", '"offset"'),
        ("sum by (a) (m", "end of input"),
        ("sum_over_time(m)", r'"\)"'),
        ("sum_over_time(m[5])", '"5"'),
        ('m{a=~"("}', "no regular expression"),
        ("m{a=1}", '"a=1"'),
        ("", "end of input"),
        ("(m)", r'"\("'),
    ],
)
def test_anything_else_is_refused_by_name(query: str, named: str) -> None:
    """What is not understood is named in a 400."""
    with pytest.raises(SourceRejected, match=named) as caught:
        parse(query)
    assert caught.value.status == 400


def test_durations_are_milliseconds() -> None:
    """Units may be combined."""
    assert [duration_ms(text) for text in ("5m", "1h30m", "2d", "250ms", "5", "m")] == [
        300_000, 5_400_000, 172_800_000, 250, 0, 0,
    ]  # fmt: skip
