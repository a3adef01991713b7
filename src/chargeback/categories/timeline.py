"""Days as integers, and spans of them: what holds when, for the resolver.

A span is (first, end), the end exclusive, in days since 1970-01-01 as Arrow's ``date32`` counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Final, TypeAlias

from chargeback.model.dated import DatedValue, Period

_EPOCH: Final = date(1970, 1, 1).toordinal()
#: 0001-01-01 and 9999-12-31, which stand for no limit.
FIRST: Final = date.min.toordinal() - _EPOCH
END: Final = date.max.toordinal() - _EPOCH

Span: TypeAlias = tuple[int, int]
ALL_TIME: Final[Span] = (FIRST, END)
#: The tags that an entity has on the days of a span.
TagsOn: TypeAlias = tuple[int, int, Mapping[str, str]]
UNTAGGED: Final[Sequence[TagsOn]] = ((*ALL_TIME, {}),)


def day_number(day: date) -> int:
    """Return the number of a day."""
    return day.toordinal() - _EPOCH


def span_of(period: Period) -> Span:
    """Return the span of a period."""
    first = FIRST if period.first is None else day_number(period.first)
    return first, END if period.end is None else day_number(period.end)


def common(one: Span, other: Span) -> Span | None:
    """Return the days that are in both spans, or None if there are none."""
    first, end = max(one[0], other[0]), min(one[1], other[1])
    return (first, end) if first < end else None


def without(spans: Iterable[Span], removed: Span) -> list[Span]:
    """Return the spans without the days of another."""
    kept = []
    for first, end in spans:
        if first < (before := min(end, removed[0])):
            kept.append((first, before))
        if (after := max(first, removed[1])) < end:
            kept.append((after, end))
    return kept


def tags_by_span(values: Mapping[str, Sequence[DatedValue]]) -> Sequence[TagsOn]:
    """Return the tags of an entity, {key: its values}, as spans that cover all of time in order."""
    dated = [(key, value.value, span_of(value.during)) for key, each in values.items() for value in each]
    cuts = sorted({FIRST, END, *(day for _, _, span in dated for day in span)})
    spans = []
    for first, end in pairwise(cuts):
        tags: dict[str, str] = {}
        for key, value, span in dated:
            if span[0] <= first and end <= span[1]:
                tags.setdefault(key, value)
        spans.append((first, end, tags))
    return spans


def overlaid(upper: Sequence[TagsOn], lower: Sequence[TagsOn]) -> Iterator[TagsOn]:
    """Yield the tags of two entities together; those of ``upper`` win over the same keys of ``lower``."""
    for first, end, tags in upper:
        for lower_first, lower_end, lower_tags in lower:
            if both := common((first, end), (lower_first, lower_end)):
                yield *both, {**lower_tags, **tags} if lower_tags else tags
