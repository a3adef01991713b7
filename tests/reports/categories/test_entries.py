"""Conversion between rules and entries of single entities."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category, to_document
from chargeback.category_sources.contract import CategoryEntry, RegisteredValue, SourceContent
from chargeback.category_sources.csv_file import read_entries
from chargeback.errors import ConfigurationError
from chargeback.model.dated import Period
from chargeback.reports.categories.entries import assignments_in, category_csv, with_csv, with_import

HEAD = "entity_type,entity_id,value,percent,valid_from,valid_to\r\n"
OTHER = {"match": {"topic": ["pay.*"]}, "assign": "payments"}


def category(*rules: dict[str, Any], **more: Any) -> CostCategory:
    """Return a category with these rules."""
    return parse_category("team", {"rules": list(rules), **more})


def rules_of(found: CostCategory) -> list[dict[str, Any]]:
    """Return the rules as a document."""
    rules: list[dict[str, Any]] = to_document(found)["rules"]
    return rules


def file(text: str) -> SourceContent:
    """Return the entries of a CSV file given without its head."""
    return SourceContent(read_entries(HEAD + text))


def naming(entity_type: str, *ids: str, assign: str = "a", **more: Any) -> dict[str, Any]:
    """Return a rule that lists entities."""
    return {"match": {entity_type: list(ids)}, "assign": assign, **more}


@pytest.mark.parametrize(
    "rule",
    [
        OTHER,
        {"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}},
        {"match": {"identity": ["sa-1"]}, "assign": {"from_tag": "team"}},
        {"match": {"identity": ["sa-1", "sa-*"]}, "assign": "a"},
        {"match": {"environment": ["env-1"]}, "assign": "a"},
        {"match": {"all": [{"identity": ["sa-1"]}]}, "assign": "a"},
        {"match": {"identity": {"regex": "(?P<team>sa)"}}, "assign": "${team}"},
    ],
)
def test_what_a_file_cannot_say(rule: dict[str, Any]) -> None:
    """A rule that a file cannot express is not exported, and an import keeps it after the others."""
    before = category(rule, naming("identity", "sa-1"))
    assert category_csv(before) == f"{HEAD}identity,sa-1,a,,,\r\n"
    after = with_csv(before, file("topic,orders,b,,,\n"))
    assert rules_of(after) == [naming("topic", "orders", assign="b"), rules_of(category(rule))[0]]


def test_names_with_stars_are_exact() -> None:
    """A name in the file is never a pattern."""
    after = with_csv(category(), file("topic,pay.*,b,,,\n"))
    assert rules_of(after) == [{"match": {"topic": {"exact": ["pay.*"]}}, "assign": "b"}]
    assert category_csv(after) == f"{HEAD}topic,pay.*,b,,,\r\n"


def test_rules_are_as_few_as_the_order_allows() -> None:
    """Entities with the same value and days share one rule, unless an entity of another type comes between them."""
    text = (
        "identity,sa-1,a,,2026-01-01,2026-02-01\n"
        "identity,sa-2,b,,,\n"
        "identity,sa-1,b,,2026-02-01,\n"
        "identity,sa-3,a,,2026-01-01,2026-02-01\n"
        "identity,sa-5,b,,,\n"
        "topic,t,b,,,\n"
        "identity,sa-4,b,,,\n"
    )
    january = {"valid_from": "2026-01-01", "valid_to": "2026-02-01"}
    assert rules_of(with_csv(category(), file(text))) == [
        naming("identity", "sa-1", "sa-3", **january),
        naming("identity", "sa-2", "sa-5", assign="b"),
        naming("identity", "sa-1", assign="b", valid_from="2026-02-01"),
        naming("topic", "t", assign="b"),
        naming("identity", "sa-4", assign="b"),
    ]


def test_ids_and_reasons_stay() -> None:
    """An entity that remains stays in its rule; a new one with the same value gets a separate rule."""
    kept = naming("identity", "sa-1", "sa-2", id="reorg", reason="CHG-1")
    before = category(OTHER, kept, naming("identity", "sa-9"))
    after = with_csv(before, file("identity,sa-2,a,,,\nidentity,sa-3,a,,,\nidentity,sa-9,a,,,\n"))
    assert rules_of(after) == [
        naming("identity", "sa-2", id="reorg", reason="CHG-1"),
        naming("identity", "sa-3", "sa-9"),
        OTHER,
    ]


def test_an_unchanged_file_changes_nothing() -> None:
    """Importing an unchanged file changes neither the order of the rules nor a hidden rule."""
    before = category(OTHER, naming("identity", "sa-1"), naming("identity", "sa-1", assign="hidden"), OTHER)
    assert with_csv(before, SourceContent(read_entries(category_csv(before)))) is before
    march = {"valid_from": "2026-03-01", "valid_to": "2026-04-01"}
    moved = category(naming("identity", "sa-1", assign="b", id="moved", reason="CHG-1", **march), *rules_of(before))
    text = category_csv(moved)
    assert text == (
        f"{HEAD}identity,sa-1,b,,2026-03-01,2026-04-01\r\n"
        "identity,sa-1,a,,,2026-03-01\r\nidentity,sa-1,a,,2026-04-01,\r\n"
    )
    assert with_csv(moved, SourceContent(read_entries(text))) is moved
    more = with_csv(moved, SourceContent(read_entries(text + "topic,t,c,,,\r\n")))
    assert rules_of(more)[0] == rules_of(moved)[0]


def test_a_value_that_is_not_registered() -> None:
    """An unregistered value is reported with its line, whether of an entity or of a part of its split."""
    before = category(values={"a": None})
    with pytest.raises(ConfigurationError) as error:
        with_csv(before, file("identity,sa-1,a,,,\ntopic,t,a,50,,\ntopic,t,c,50,,\nidentity,sa-2,b,,,\n"))
    assert [str(each) for each in error.value.problems] == [
        "line 3: unknown value 'c'; values has a",
        "line 5: unknown value 'b'; values has a",
    ]


def test_an_id_that_cannot_be() -> None:
    """An invalid id is reported with the line of the entity, not with that of its rule."""
    entries = [*read_entries(HEAD + "topic,a,b,,,\n"), CategoryEntry("topic", "\t", "b", place="line 9")]
    with pytest.raises(ConfigurationError) as error:
        with_csv(category(), SourceContent(entries))
    assert [str(each) for each in error.value.problems] == ["line 9: should have no control characters"]


IMPORTED = naming("topic", "orders", id="csv:topic:a")


def test_an_import_replaces_its_own_rules() -> None:
    """An import replaces its own rules in place; the first import appends them, and ids are made unique."""
    first = with_import(category(OTHER), "csv", file("topic,orders,a,,,\n"), is_new=False)
    assert rules_of(first) == [OTHER, IMPORTED]
    moved = category(IMPORTED, OTHER, {**OTHER, "id": "backstage:x"})
    january = {"valid_from": "2026-01-01", "valid_to": "2026-02-01"}
    text = "topic,orders,a,,2026-01-01,2026-02-01\ntopic,orders,a,,2026-02-01,\n"
    text += "identity,sa-1,a,60,,\nidentity,sa-1,b,40,,\n"
    again = with_import(moved, "csv", file(text), is_new=False)
    assert rules_of(again) == [
        naming("topic", "orders", id="csv:topic:a", **january),
        naming("topic", "orders", id="csv:topic:a:2", valid_from="2026-02-01"),
        {"id": "csv:identity:a+b", "match": {"identity": ["sa-1"]}, "split": {"a": "60", "b": "40"}},
        OTHER,
        {"id": "backstage:x", **OTHER},
    ]
    assert rules_of(with_import(again, "csv", SourceContent(), is_new=False)) == [OTHER, {"id": "backstage:x", **OTHER}]


CONTENT = SourceContent(
    [CategoryEntry("topic", "orders", "payments"), CategoryEntry("topic", "x", "plain")],
    [RegisteredValue("payments", "Payments", "retail"), RegisteredValue("retail", "Retail")],
)


def test_the_register_of_an_import() -> None:
    """A new category gets the register of the source. An existing register gets the missing values and keeps its own; a
    category without a register gets none, since it would forbid other values."""
    whole = {"payments": {"name": "Payments", "parent": "retail"}, "plain": {}, "retail": {"name": "Retail"}}
    assert to_document(with_import(category(), "backstage", CONTENT, is_new=True))["values"] == whole
    present = {"payments": {"name": "Pay"}, "old": {}}
    added = with_import(category(values=present), "backstage", CONTENT, is_new=False)
    assert to_document(added)["values"] == {**present, "plain": {}, "retail": {"name": "Retail"}}
    assert not with_import(category(), "backstage", CONTENT, is_new=False).values
    assert not with_import(category(), "csv", file("topic,orders,a,,,\n"), is_new=True).values


DAYS = st.one_of(st.none(), st.integers(0, 8))
ROWS = st.lists(
    st.tuples(st.sampled_from(["identity", "topic"]), st.sampled_from("xyz"), st.sampled_from("abc"), DAYS, DAYS),
    max_size=12,
)
START = date(2026, 1, 1)


def first_value(entries: list[tuple[str, str, str, Period]], names: dict[str, str], day: date) -> str | None:
    """Return the value of the first entry that matches these names on a day, or None."""
    return next((value for kind, name, value, during in entries if names[kind] == name and day in during), None)


def dated(during: Period) -> dict[str, str]:
    """Return the dates of a rule."""
    days = {"valid_from": during.first, "valid_to": during.end}
    return {name: day.isoformat() for name, day in days.items() if day is not None}


@given(ROWS)
def test_rules_mean_what_the_lines_say(rows: list[tuple[str, str, str, int | None, int | None]]) -> None:
    """For every row and day, the first matching line decides; the file written from the rules gives the same values,
    even if rules overlap."""
    rules: list[tuple[str, str, str, Period]] = []
    entries: list[tuple[str, str, str, Period]] = []
    for kind, name, value, first, end in rows:
        days = [None if each is None else START + timedelta(days=each) for each in (first, end)]
        during = Period(days[0], days[1])
        if not during.is_empty:
            rules.append((kind, name, value, during))
            if not any((kind, name) == each[:2] and during.overlaps(each[3]) for each in entries):
                entries.append((kind, name, value, during))
    content = SourceContent([CategoryEntry(kind, name, value, None, during) for kind, name, value, during in entries])
    made = with_csv(category(), content)
    again = with_csv(category(), SourceContent(read_entries(category_csv(made))))
    assert len(made.rules) <= len(entries)
    overlapping = category(
        *({"match": {kind: [name]}, "assign": value, **dated(during)} for kind, name, value, during in rules)
    )
    written = with_csv(category(), SourceContent(read_entries(category_csv(overlapping))))
    for found, expected in ((made, entries), (again, entries), (written, rules)):
        named = [each for rule in found.rules for each in assignments_in(rule)]
        ours = [(each.entity_type, each.entity_id, each.parts[0][0], each.during) for each in named]
        for day in (START + timedelta(days=n) for n in range(-1, 10)):
            for identity in "xyz":
                for topic in "xyz":
                    names = {"identity": identity, "topic": topic}
                    assert first_value(ours, names, day) == first_value(expected, names, day)


def test_percentages_are_written_plainly() -> None:
    """Percentages are written without an exponent and without trailing zeros."""
    parts = [CategoryEntry("topic", "t", value, Decimal(percent)) for value, percent in (("a", "1E+1"), ("b", "90.0"))]
    assert category_csv(with_csv(category(), SourceContent(parts))) == f"{HEAD}topic,t,a,10,,\r\ntopic,t,b,90,,\r\n"
