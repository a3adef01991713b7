"""The value of a subject on a day, on small documents."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from chargeback.categories.parsing import parse_category
from chargeback.categories.resolve import Outcome, RuleName, SubjectAssignment, outcome_of, resolve, used_columns
from chargeback.model.dated import DatedValue, Period
from tests.support.categories import SomeNames, SomeTags

DAY = date(2026, 3, 1)
NO_TAGS, NO_NAMES = SomeTags({}), SomeNames({})


def _value(rules: list[dict[str, Any]], subject: dict[str, str], tags: SomeTags = NO_TAGS, **names: str) -> str:
    """Return the value of a subject; ``names`` are those of its identity and resource."""
    named = {(kind, subject[f"{kind}_id"]): name for kind, name in names.items()}
    category = parse_category("k", {"rules": rules})
    ((value, _),) = outcome_of(category, subject, DAY, tags, SomeNames(named)).parts
    return value


def test_periods_are_those_of_rules_and_values() -> None:
    """A rule applies on its own days, while its value is valid; on other days later rules apply."""
    document = {
        "values": {"new": {"valid_from": "2026-04-01"}, "old": None},
        "rules": [
            {"match": {"identity": "sa-1"}, "assign": "new", "valid_from": "2026-03-01", "valid_to": "2026-05-01"},
            {"match": {"identity": "sa-*"}, "split": {"old": "60", "new": "40"}, "valid_from": "2026-06-01"},
            {"match": {"identity": "sa-*"}, "assign": "old", "valid_from": "2026-05-01"},
        ],
    }
    subjects = pa.table({"identity_id": ["sa-1", None]})
    resolved = resolve(parse_category("k", document), subjects, NO_TAGS, NO_NAMES)
    assert [tuple(period.values()) for period in resolved.periods.to_pylist()] == [
        ("sa-1", date.min, date(2026, 4, 1), 0),
        ("sa-1", date(2026, 4, 1), date(2026, 5, 1), 1),
        ("sa-1", date(2026, 5, 1), date(2026, 6, 1), 3),
        ("sa-1", date(2026, 6, 1), date.max, 2),
        (None, date.min, date.max, 0),
    ]
    assert resolved.outcomes == (
        Outcome((("UNASSIGNED", 1),), None),
        Outcome((("new", 1),), 0),
        Outcome((("new", 2), ("old", 3)), 1),
        Outcome((("old", 1),), 2),
    )


def test_the_tester_names_the_rule_its_reason_the_path_and_the_losers() -> None:
    """The explanation has the rule, the path, and later rules that would have applied."""
    document = {
        "values": {"payments": {"parent": "retail"}, "retail": {"parent": "group"}, "group": None},
        "rules": [
            {"match": {"topic": "x"}, "assign": "group"},
            {"id": "first", "match": {"identity": "sa-1"}, "assign": "payments", "reason": "CHG-1"},
            {"match": {"identity": "sa-1"}, "assign": "retail", "valid_from": "2026-03-02"},
            {"match": {"identity": "sa-*"}, "assign": "retail"},
        ],
    }
    found = outcome_of(parse_category("k", document), {"identity_id": "sa-1"}, DAY, NO_TAGS, NO_NAMES)
    path = ("payments", "retail", "group")
    rule, lost = RuleName(1, "first", "CHG-1"), RuleName(3, "rules[3]", None)
    assert found == SubjectAssignment((("payments", 1),), (path,), rule, (lost,))


def test_a_row_without_the_tested_column_does_not_match() -> None:
    """A test of a column that the row does not have is false, and its negation is true."""
    assert _value([{"match": {"topic": "*"}, "assign": "a"}], {"identity_id": "x"}) == "UNASSIGNED"
    assert _value([{"match": {"not": {"topic": "*"}}, "assign": "a"}], {"identity_id": "x"}) == "a"


def test_unallocated_is_matched_like_any_identity() -> None:
    """Unallocated cost can be assigned to a value."""
    assert _value([{"match": {"identity": "UNALLOCATED"}, "assign": "a"}], {"identity_id": "UNALLOCATED"}) == "a"


def test_the_tag_of_the_identity_wins_over_that_of_the_resource() -> None:
    """On days on which only the resource has the tag, its value applies."""
    tags = SomeTags(
        {
            ("identity", "i", "team"): [DatedValue("mine", Period(date(2026, 4, 1)))],
            ("resource", "r", "team"): [DatedValue("shared")],
        }
    )
    category = parse_category("k", {"rules": [{"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}}]})
    periods = resolve(category, pa.table({"identity_id": ["i"], "resource_id": ["r"]}), tags, NO_NAMES)
    assert [(each["first_day"], each["outcome"]) for each in periods.periods.to_pylist()] == [
        (date.min, 1),
        (date(2026, 4, 1), 2),
    ]
    assert [outcome.parts for outcome in periods.outcomes[1:]] == [(("shared", 1),), (("mine", 1),)]


def test_a_made_value_that_is_not_in_the_register_is_not_assigned() -> None:
    """If the register lacks the value of a tag, later rules apply."""
    tags = SomeTags({("identity", "i", "team"): [DatedValue("paymnts")]})
    rules = [
        {"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}},
        {"match": {"identity": "i"}, "assign": "payments"},
    ]
    category = parse_category("k", {"values": {"payments": None}, "rules": rules})
    found = outcome_of(category, {"identity_id": "i"}, DAY, tags, NO_NAMES)
    assert (found.parts, found.rule) == ((("payments", 1),), RuleName(1, "rules[1]", None))


def test_a_template_needs_every_group() -> None:
    """If a group of the template captures nothing, the rule does not apply."""
    regex = "^(?P<team>[a-z]*)-(?P<stage>prod|dev)?"
    rules = [{"match": {"display_name": {"regex": regex}}, "assign": "${team}.${stage}"}]
    row = {"identity_id": "i", "resource_id": "r"}
    assert _value(rules, row, identity="pay-prod") == "pay.prod"
    assert _value(rules, row, identity="pay-x") == "UNASSIGNED"
    assert _value(rules, row, identity="-prod", resource="pay-dev") == "pay.prod"


def test_the_captures_of_the_identity_come_before_those_of_the_resource() -> None:
    """A test of display names matches if either name does."""
    rules = [{"match": {"display_name": {"regex": "^(?P<team>[a-z]+)-"}}, "assign": "${team}"}]
    row = {"identity_id": "i", "resource_id": "r"}
    assert _value(rules, row, identity="a-1", resource="b-1") == "a"
    assert _value(rules, row, identity="A", resource="b-1") == "b"


def test_captures_come_from_the_branches_that_hold_in_the_order_of_the_document() -> None:
    """A branch that does not match as a whole captures nothing, even if one of its regexes matches."""

    def capture(subject: str) -> dict[str, Any]:
        return {subject: {"regex": "^(?P<team>.)"}}

    failing = {"all": [capture("identity"), {"topic": "t"}]}
    row = {"identity_id": "i", "resource_id": "r", "environment_id": "e"}
    one = {"any": [failing, capture("resource"), capture("environment")]}
    assert _value([{"match": one, "assign": "${team}"}], row) == "r"
    every = {"all": [capture("environment"), capture("resource")]}
    assert _value([{"match": every, "assign": "${team}"}], row) == "e"
    inner = {"any": [{"any": [{"topic": "t"}, capture("resource")]}, capture("environment")]}
    assert _value([{"match": inner, "assign": "${team}"}], row) == "r"
    both = {"all": [{"not": {"topic": "t"}}, capture("environment"), capture("identity")]}
    assert _value([{"match": both, "assign": "${team}"}], row) == "e"


def test_only_columns_that_rules_can_see_are_used() -> None:
    """Tags and display names need the identity and the resource; without rules no column is needed."""
    rules: list[dict[str, Any]] = [{"match": {"product_type": "X"}, "assign": {"from_tag": "team"}}]
    assert used_columns(parse_category("k", {"rules": rules})) == ("identity_id", "resource_id", "product_type")
    assert used_columns(parse_category("k", {})) == ()


def test_a_category_without_rules_gives_every_row_its_default() -> None:
    """Without rules there is one subject for all rows, with the default."""
    resolved = resolve(parse_category("k", {"default": "all"}), pa.table({}), NO_TAGS, NO_NAMES)
    assert resolved.periods.to_pylist() == [{"first_day": date.min, "end_day": date.max, "outcome": 0}]
    assert resolved.outcomes == (Outcome((("all", 1),), None),)


def test_columns_keep_their_types() -> None:
    """Dictionary-encoded columns keep their type, so that they can be joined without a conversion."""
    ids = pa.array(["a", None, "b"]).dictionary_encode()
    category = parse_category("k", {"rules": [{"match": {"identity": "a"}, "assign": "x"}]})
    resolved = resolve(category, pa.table({"identity_id": ids}), NO_TAGS, NO_NAMES)
    assert resolved.periods.schema.field("identity_id").type == ids.type
    assert resolved.periods["outcome"].to_pylist() == [1, 0, 0]


def test_no_subjects_have_no_periods() -> None:
    """An empty table of subjects gives an empty relation with the same columns."""
    category = parse_category("k", {"rules": [{"match": {"identity": "a"}, "assign": "x"}]})
    resolved = resolve(category, pa.table({"identity_id": pa.array([], pa.string())}), NO_TAGS, NO_NAMES)
    assert resolved.periods.column_names == ["identity_id", "first_day", "end_day", "outcome"]
    assert resolved.periods.num_rows == 0


@pytest.mark.parametrize("word", ["UNASSIGNED", "UNTAGGED", "UNALLOCATED"])
@pytest.mark.parametrize("default", ["UNASSIGNED", "nobody"])
def test_words_that_say_that_there_is_no_value(word: str, default: str) -> None:
    """Tags and names with a word for no value give no value: later rules apply, and otherwise the row is unassigned."""
    tags = SomeTags({("identity", "sa-1", "team"): [DatedValue(word)]})
    group = {"display_name": {"regex": "^(?P<team>[A-Z]+)-"}}
    rules: list[dict[str, Any]] = [
        {"match": {"identity": "sa-1"}, "assign": {"from_tag": "team"}},
        {"match": {"tag": {"key": "team", "value": {"regex": "(?P<team>.+)"}}}, "assign": "${team}"},
        {"match": group, "assign": "${team}-shared"},
        {"match": {"identity": {"regex": "^(?P<half>..)"}}, "assign": "${half}" + word[2:]},
    ]
    row = {"identity_id": "UNIT", "resource_id": None}
    names = SomeNames({("identity", "sa-1"): f"{word}-prod", ("identity", "UNIT"): f"{word}-prod"})
    for last, expected in (([], default), ([{"match": {"identity": "*"}, "assign": "later"}], "later")):
        category = parse_category("k", {"default": default, "rules": rules[:3] + last})
        for identity in ("sa-1", "UNIT"):
            found = outcome_of(category, {**row, "identity_id": identity}, date(2026, 3, 1), tags, names)
            assert found.parts == ((expected, 1),)
        category = parse_category("k", {"default": default, "rules": rules[3:] + last})
        assert outcome_of(category, row, date(2026, 3, 1), tags, names).parts == ((expected, 1),)
