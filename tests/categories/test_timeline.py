"""Spans of days."""

from __future__ import annotations

from datetime import date

from chargeback.categories.timeline import ALL_TIME, END, FIRST, common, overlaid, span_of, tags_by_span, without
from chargeback.model.dated import DatedValue, Period


def test_a_period_is_a_span() -> None:
    """Days are counted from 1970, and a missing limit is the end of the calendar."""
    assert span_of(Period(date(1970, 1, 2), date(1970, 1, 5))) == (1, 4)
    assert span_of(Period()) == ALL_TIME


def test_spans_are_cut() -> None:
    """Spans can be intersected and subtracted."""
    assert (common((0, 5), (3, 9)), common((0, 5), (5, 9))) == ((3, 5), None)
    assert without([(0, 5), (7, 9)], (2, 8)) == [(0, 2), (8, 9)]
    assert without([(0, 9)], (2, 4)) == [(0, 2), (4, 9)]
    assert without([(2, 4)], (0, 9)) == []


def test_tags_change_with_the_days() -> None:
    """The tags of an entity change with the days; where it lacks a key, the tags of the other entity apply."""
    dated = [DatedValue("a", Period(None, date(1970, 1, 3))), DatedValue("b", Period(date(1970, 1, 5)))]
    spans = tags_by_span({"team": dated})
    assert spans == [(FIRST, 2, {"team": "a"}), (2, 4, {}), (4, END, {"team": "b"})]
    lower = tags_by_span({"team": [DatedValue("c")], "cost": [DatedValue("d", Period(date(1970, 1, 4)))]})
    assert list(overlaid(spans, lower)) == [
        (FIRST, 2, {"team": "a"}),
        (2, 3, {"team": "c"}),
        (3, 4, {"team": "c", "cost": "d"}),
        (4, END, {"team": "b", "cost": "d"}),
    ]
