"""Reports about the rules of a category."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from chargeback.categories.analysis import Analysis, NeverMatching, Overlap, Shadowed, UnknownValue, analyse
from chargeback.categories.parsing import parse_category
from chargeback.categories.resolve import RuleName
from chargeback.model.dated import DatedValue
from tests.support.categories import SomeNames, SomeTags


def _analyse(document: dict[str, Any], tags: SomeTags | None = None) -> Analysis:
    category = parse_category("k", document)
    columns = {"identity_id": ["sa-1", "sa-2", "u-1"], "resource_id": ["lkc-1", "lkc-1", "lkc-1"]}
    return analyse(category, pa.table(columns), tags or SomeTags({}), SomeNames({}))


def _rule(index: int) -> RuleName:
    return RuleName(index, f"rules[{index}]", None)


def test_rules_that_do_nothing_are_reported_with_the_reason() -> None:
    """A rule may match nothing, have no valid day, or always come after another one."""
    found = _analyse(
        {
            "values": {"a": None, "b": {"valid_to": "2026-01-01"}},
            "rules": [
                {"match": {"identity": "none"}, "assign": "a"},
                {"match": {"identity": "sa-*"}, "assign": "b", "valid_from": "2026-02-01"},
                {"match": {"identity": "sa-1"}, "assign": "a", "valid_to": "2026-03-01"},
                {"match": {"identity": "sa-1"}, "assign": "a", "valid_from": "2026-03-01"},
                {"match": {"identity": "sa-1"}, "assign": "a"},
                {"match": {"resource": "*"}, "assign": "a"},
            ],
        }
    )
    assert found.never_matching == (
        NeverMatching(_rule(0), "nothing matches it on the days on which it is valid"),
        NeverMatching(_rule(1), "its dates and those of its values have no day in common"),
    )
    assert found.shadowed == (Shadowed(_rule(4), (_rule(2), _rule(3))),)
    assert found.overlaps == ()


def test_overlaps_count_the_subjects_that_would_have_another_value() -> None:
    """Only the rule that decides is named as the winner of an overlap."""
    found = _analyse(
        {
            "rules": [
                {"match": {"identity": "sa-1"}, "assign": "a"},
                {"match": {"identity": "sa-*"}, "assign": "b"},
                {"match": {"resource": "*"}, "assign": "b"},
            ]
        }
    )
    assert found.overlaps == (Overlap(_rule(0), _rule(1), 1), Overlap(_rule(0), _rule(2), 1))


def test_made_values_that_the_register_lacks_are_reported() -> None:
    """Unknown values from tags and templates are reported once per rule."""
    tags = SomeTags({("identity", each, "team"): [DatedValue("paymnts")] for each in ("sa-1", "sa-2")})
    rules = [{"match": {"identity": "*"}, "assign": {"from_tag": "team"}}]
    found = _analyse({"values": {"payments": None}, "rules": rules}, tags)
    assert found.unknown_values == (UnknownValue("paymnts", _rule(0)),)
    assert [each.rule for each in found.never_matching] == [_rule(0)]
