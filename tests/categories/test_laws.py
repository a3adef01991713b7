"""Properties of cost categories, on random documents, tags, names and bills, compared with a naive evaluation of the
document."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.categories.analysis import analyse
from chargeback.categories.document import CostCategory
from chargeback.categories.handover import WHOLE, composed, day_steps
from chargeback.categories.parsing import parse_category, to_document
from chargeback.categories.resolve import Outcome, Resolved, outcome_of, resolve, used_columns
from chargeback.categories.weights import parts
from tests.categories.naive import Naive, handed, largest_remainder, weights_of_day
from tests.support.categories import (
    CHANGES,
    DAYS,
    BillRow,
    SomeNames,
    SomeTags,
    bills,
    documents,
    names,
    subjects_table,
    tags,
    usages,
)

_Periods: TypeAlias = dict[tuple[Any, ...], list[tuple[date, date, int]]]
SOME_DAYS = [date.min, *CHANGES, date.max - timedelta(1)]


def _resolved(
    category: CostCategory, bill: list[BillRow], tags: SomeTags, names: SomeNames
) -> tuple[Resolved, _Periods]:
    """Resolve a bill; also return the periods of each subject."""
    columns = used_columns(category)
    resolved = resolve(category, subjects_table([row.subject for row in bill], columns), tags, names)
    periods: _Periods = defaultdict(list)
    for period in resolved.periods.to_pylist():
        subject = tuple(period[name] for name in columns)
        periods[subject].append((period["first_day"], period["end_day"], period["outcome"]))
    return resolved, periods


def _outcome(category: CostCategory, resolved: Resolved, periods: _Periods, row: BillRow, day: date) -> Outcome:
    subject = tuple(row.subject[name] for name in used_columns(category))
    (found,) = [outcome for first, end, outcome in periods[subject] if first <= day < end]
    return resolved.outcomes[found]


@given(documents(), bills(), tags(), names())
def test_every_row_is_resolved_as_the_document_says(
    document: dict[str, Any], bill: list[BillRow], tags: SomeTags, names: SomeNames
) -> None:
    """On every day, the resolved periods, the tester and the naive evaluation agree on the rule, the values and their
    shares."""
    category = parse_category("team", document)
    naive = Naive(document, tags, names)
    resolved, periods = _resolved(category, bill, tags, names)
    for row in bill:
        for day in SOME_DAYS:
            rule, shares = naive.decided(row.subject, day)
            outcome = _outcome(category, resolved, periods, row, day)
            assert outcome.rule == rule
            assert dict(parts(row.units, outcome)) == largest_remainder(row.units, shares)
            tested = outcome_of(category, row.subject, day, tags, names)
            assert tested.parts == outcome.parts
            applying = [place for place, _ in naive.applying(row.subject, day)]
            assert [each.index for each in (*filter(None, [tested.rule]), *tested.lost)] == applying


@given(documents(), bills(), tags(), names())
def test_the_periods_of_a_subject_cover_all_of_time_once(
    document: dict[str, Any], bill: list[BillRow], tags: SomeTags, names: SomeNames
) -> None:
    """The periods cover the whole calendar without gaps or overlaps, and neighbouring periods differ."""
    _, periods = _resolved(parse_category("team", document), bill, tags, names)
    for each in periods.values():
        assert (each[0][0], each[-1][1]) == (date.min, date.max)
        assert all(first < end for first, end, _ in each)
        assert all(one[1] == other[0] and one[2] != other[2] for one, other in pairwise(each))


@given(documents(), bills(), tags(), names(), usages())
def test_the_weights_of_a_day_are_those_of_its_steps(
    document: dict[str, Any],
    bill: list[BillRow],
    tags: SomeTags,
    names: SomeNames,
    usage: dict[str, dict[str, int]],
) -> None:
    """The steps of each day are composed as fractions and rounded once: the weights of a source are integers, sum to
    10¹², and each differs by less than one from its exact part; cost that passes through a value counts as received and
    passed on."""
    category = parse_category("team", document)
    naive = Naive(document, tags, names)
    resolved, periods = _resolved(category, bill, tags, names)
    for day in DAYS:
        held: dict[str, int] = defaultdict(int)
        for row in bill:
            if row.day == day:
                for value, part in parts(row.units, _outcome(category, resolved, periods, row, day)):
                    held[value] += part
        steps, expected = day_steps(category, held, usage, day), naive.steps(held, usage, day)
        assert [(step.source, _fractions(step.parts)) for step in steps] == expected
        found = {
            source: {each.value: (each.weight, each.passed) for each in receivers}
            for source, receivers in composed(steps).items()
        }
        assert found == weights_of_day(expected)
        for place, (source, _) in enumerate(expected):
            remaining, passed = handed(expected, place)
            assert sum(weight for weight, _ in found[source].values()) == WHOLE
            for value, (weight, through) in found[source].items():
                assert abs(weight - WHOLE * remaining.get(value, Fraction(0))) < 1
                assert abs(through - WHOLE * passed.get(value, Fraction(0))) < 1


def _fractions(weights: tuple[tuple[str, int], ...]) -> dict[str, Fraction]:
    whole = sum(weight for _, weight in weights)
    return {value: Fraction(weight, whole) for value, weight in weights}


@given(documents())
def test_the_canonical_form_parses_to_the_same_category(document: dict[str, Any]) -> None:
    """Exporting and parsing a document does not change it."""
    category = parse_category("team", document)
    canonical = to_document(category)
    assert parse_category("team", canonical) == category
    assert to_document(parse_category("team", canonical)) == canonical


@given(documents(), bills(), tags(), names())
def test_the_analysis_agrees_with_what_is_decided(
    document: dict[str, Any], bill: list[BillRow], tags: SomeTags, names: SomeNames
) -> None:
    """A rule is reported as never matching if it applies to no row, and as shadowed if it applies but never decides."""
    category = parse_category("team", document)
    naive = Naive(document, tags, names)
    subjects = subjects_table([row.subject for row in bill], used_columns(category))
    found = analyse(category, subjects, tags, names)
    applying = [[place for place, _ in naive.applying(row.subject, day)] for row in bill for day in SOME_DAYS]
    everything = set(range(len(category.rules)))
    applied, decided = {place for each in applying for place in each}, {each[0] for each in applying if each}
    assert {each.rule.index for each in found.never_matching} == everything - applied
    assert {each.rule.index for each in found.shadowed} == applied - decided
    pairs = {(each[0], place) for each in applying for place in each[1:]}
    assert {(each.winner.index, each.loser.index) for each in found.overlaps} <= pairs
    for shadowed in found.shadowed:
        assert {(winner.index, shadowed.rule.index) for winner in shadowed.by} == {
            pair for pair in pairs if pair[1] == shadowed.rule.index
        }


@given(st.integers(-(10**30), 10**30), documents())
def test_the_parts_of_a_row_sum_to_it(units: int, document: dict[str, Any]) -> None:
    """The parts of a row sum to it exactly."""
    category = parse_category("team", document)
    resolved = resolve(
        category, pa.table({name: ["x"] for name in used_columns(category)}), SomeTags({}), SomeNames({})
    )
    for outcome in resolved.outcomes:
        assert sum(part for _, part in parts(units, outcome)) == units


@pytest.mark.parametrize("rules", [[], [{"match": {"identity": "sa-1"}, "assign": "a", "valid_to": "0001-01-02"}]])
def test_time_begins_on_its_first_day(rules: list[dict[str, Any]]) -> None:
    """A rule that ends after the first day of the calendar applies on that day; without rules, the default does."""
    category = parse_category("team", {"rules": rules})
    found = outcome_of(category, {"identity_id": "sa-1"}, date.min, SomeTags({}), SomeNames({}))
    assert found.parts == ((("a", 1),) if rules else (("UNASSIGNED", 1),))
