"""Previews of edits of a cost category, on random documents and bills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from chargeback.categories.parsing import parse_category
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import to_units
from chargeback.reports.categories.answers import DryRunAnswer, preview
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagIndex
from tests.categories.naive import Naive, largest_remainder
from tests.store.queries.test_category_laws import in_table, write_bill
from tests.support.categories import DAYS, BillRow, SomeNames, SomeTags, bills, documents, names, tags
from tests.support.facts import new_facts

ALL = Selection.of_days(DayRange(DAYS[0], DAYS[-1] + ONE_DAY))
#: A preview of an edit from one document to another, on a bill with tags and names.
Previewing = Callable[[dict[str, Any], dict[str, Any]], DryRunAnswer]

_made_once = [HealthCheck.function_scoped_fixture]


@pytest.fixture
def previewing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Yield a context manager that writes a bill and previews edits of the category stored with it."""
    with QueryEngine(threads=1) as engine:

        @contextmanager
        def _previewing(bill: list[BillRow], tags: SomeTags, names: SomeNames) -> Iterator[Previewing]:
            folder: Path = tmp_path_factory.mktemp("preview")
            facts = new_facts(folder / "facts")
            write_bill(facts, bill)

            def _preview(before: dict[str, Any], after: dict[str, Any]) -> DryRunAnswer:
                index = CategoryIndex({"team": StoredCategory(parse_category("team", before), 1)})
                with engine.cursor(CancellationToken()) as cursor:
                    stored = CategoryLookup(index, tags=tags, names=lambda: names)
                    reader = TenantReader(cursor, facts, TagIndex(), categories=stored)
                    return preview(reader, "team", parse_category("team", after), ALL, "USD", lambda _: {})

            yield _preview

        yield _previewing


@pytest.mark.extensive
@settings(suppress_health_check=_made_once, max_examples=4, deadline=None)
@given(bills(), tags(), names(), documents(), documents())
def test_what_an_edit_moves(
    previewing: Any, bill: list[BillRow], tags: SomeTags, names: SomeNames, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """An unchanged document moves nothing. An edit moves exactly the differences between the values, and the reverse
    edit moves them back; documents have splits, dates, shares, and bills have credits."""
    bill = [in_table(row) for row in bill]
    with previewing(bill, tags, names) as edit:
        same = edit(one, one)
        assert (same.moved, same.items) == ([], [])
        assert same.coverage_before == same.coverage_after
        assert all(each.before == each.after for each in same.values)
        there, back = edit(one, other), edit(other, one)
    for found, returned in ((there.moved, back.moved), (there.items, back.items)):
        assert {(getattr(each, "identity_id", None), each.before, each.after, each.amount) for each in found} == {
            (getattr(each, "identity_id", None), each.after, each.before, each.amount) for each in returned
        }
    changes: Counter[str] = Counter()
    for each in there.moved:
        changes[each.after] += to_units(each.amount)
        changes[each.before] -= to_units(each.amount)
    expected: Counter[str] = Counter()
    for document, sign in ((one, -1), (other, 1)):
        naive = Naive(document, tags, names)
        for row in bill:
            for value, units in largest_remainder(row.units, naive.decided(row.subject, row.day)[1]).items():
                expected[value] += sign * units
    assert {value: units for value, units in changes.items() if units} == {
        value: units for value, units in expected.items() if units
    }


#: The values of an identity before and after an edit, and what moves of its 100 units.
EDITS: list[tuple[Any, Any, dict[tuple[str, str], int]]] = [
    ({"a": "60", "b": "40"}, {"a": "60", "b": "40"}, {}),
    ({"a": "60", "b": "40"}, {"a": "40", "b": "60"}, {("a", "b"): 20}),
    ({"a": "60", "b": "40"}, {"a": "60", "c": "40"}, {("b", "c"): 40}),
    ({"a": "60", "b": "40"}, "a", {("b", "a"): 40}),
    ("a", {"a": "60", "b": "40"}, {("a", "b"): 40}),
    ("a", {"b": "60", "c": "40"}, {("a", "b"): 60, ("a", "c"): 40}),
    ("a", "b", {("a", "b"): 100}),
]


def test_the_parts_of_a_split_that_differ(previewing: Any) -> None:
    """Only the parts of a split that differ move; those of a credit with its sign."""
    signs = {"sa": 1, "credit": -1}
    identities = {f"{kind}-{place}": edit for kind in signs for place, edit in enumerate(EDITS)}
    bill = [
        BillRow(DAYS[0], identity, "lkc-1", None, None, "KAFKA_STORAGE", "KAFKA", 100 * signs[identity.split("-")[0]])
        for identity in identities
    ]
    documents = [
        {
            "rules": [
                {"match": {"identity": identity}, "assign" if isinstance(edit[side], str) else "split": edit[side]}
                for identity, edit in identities.items()
            ]
        }
        for side in (0, 1)
    ]
    with previewing(bill, SomeTags({}), SomeNames({})) as edit:
        found = edit(*documents)
    assert {(each.identity_id, each.before, each.after): to_units(each.amount) for each in found.items} == {
        (identity, *place): part * signs[identity.split("-")[0]]
        for identity, (_, _, moved) in identities.items()
        for place, part in moved.items()
    }


def test_rows_that_move_in_both_directions(previewing: Any) -> None:
    """If two resources of an identity swap values, both moves are shown although they cancel."""
    bill = [BillRow(DAYS[0], "sa-1", place, None, None, "KAFKA_STORAGE", "KAFKA", 7) for place in ("lkc-1", "lkc-2")]

    def _document(first: str, second: str) -> dict[str, Any]:
        placed = (("lkc-1", first), ("lkc-2", second))
        return {"rules": [{"match": {"resource": place}, "assign": value} for place, value in placed]}

    with previewing(bill, SomeTags({}), SomeNames({})) as edit:
        found = edit(_document("a", "b"), _document("b", "a"))
    assert {(each.before, each.after): to_units(each.amount) for each in found.moved} == {("a", "b"): 7, ("b", "a"): 7}


def test_rules_with_the_same_sum_keep_their_order(previewing: Any) -> None:
    """Rules with the same sum are ordered by value, then as in the document, in whatever order the sums are read."""
    bill = [
        in_table(BillRow(DAYS[0], f"sa-{number}", "lkc-1", None, None, "KAFKA_STORAGE", "KAFKA", 10**12))
        for number in range(9)
    ]
    rules = [{"id": f"rule-{number}", "match": {"identity": f"sa-{number}"}, "assign": "x"} for number in range(8)]
    with previewing(bill, SomeTags({}), SomeNames({})) as edit:
        found = edit({"rules": rules[::-1]}, {"rules": rules[::-1]}).coverage_after
    assert [each.rule and each.rule.id for each in found.by_rule] == [None, *(f"rule-{n}" for n in range(7, -1, -1))]
