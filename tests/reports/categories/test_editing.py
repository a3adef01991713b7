"""Edits of cost categories on both databases, and differences between versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.errors import CategoryProblem, ConfigurationError, EditConflict
from chargeback.reports.categories import editing
from chargeback.reports.categories.editing import (
    TooManyCategories,
    _text,
    categories_yaml,
    counts_of,
    differences,
    preview_categories,
    read_categories,
    save_categories,
    save_category,
    warnings_about,
)
from chargeback.store.control import cost_categories as store
from chargeback.store.control.cost_categories import CategoryVersion, CategoryWrite
from chargeback.store.control.database import ControlDatabase
from tests.support.clock import NOW
from tests.support.databases import KINDS, control_database

RULE = {"match": {"topic": ["pay.*"]}, "assign": "payments"}
VERSION = CategoryVersion("team", 3, '{"default":"UNASSIGNED","rules":[]}', "ann", NOW, None)


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlDatabase]:
    """Yield a migrated, empty control database."""
    with control_database(request.param, tmp_path) as database:
        yield database


def test_all_or_none(database: ControlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several categories are written in one transaction; if one fails, none is written."""
    monkeypatch.setattr(editing, "MOST_CATEGORIES", 2)
    several = [parse_category(key, {"rules": [RULE]}) for key in ("a", "b", "c")]
    with pytest.raises(TooManyCategories) as error, database.write() as connection:
        save_categories(connection, several, who="ann")
    assert str(error.value) == "there are 2 cost categories already; remove some"
    with database.write() as connection:
        assert store.list_categories(connection) == []
        done = save_categories(connection, several[:2], who="ann", reason="CHG-1")
    with database.read() as connection:
        assert store.list_categories(connection) == [edit.after for edit in done]
    assert [(edit.before, edit.after.version, edit.after.reason, edit.is_change) for edit in done] == [
        (None, 1, "CHG-1", True)
    ] * 2


def test_what_says_the_same_is_not_written(database: ControlDatabase) -> None:
    """Unchanged content is not written; preview and write agree on that and on the next version number."""
    one = parse_category("a", {"rules": [RULE]})
    with database.write() as connection:
        (first,) = save_categories(connection, [one], who="ann")
        (same,) = save_categories(connection, [one], who="bob")
        (would,) = preview_categories(connection, [one])
        assert (same, would) == (editing.CategoryEdit(first.after, first.after, ()),) * 2
        other = parse_category("a", {})
        (would,) = preview_categories(connection, [other])
        (did,) = save_categories(connection, [other], who="bob")
        assert (would.after.version, would.differences) == (did.after.version, did.differences)
        store.write_category(connection, CategoryWrite("a", None), expected=2)
        assert [edit.after.version for edit in preview_categories(connection, [one])] == [4]
        with pytest.raises(EditConflict):
            save_category(connection, one, expected=did.after, who="ann")


def test_versions_have_etags_of_their_own() -> None:
    """Versions with the same number but different content have different ETags, as after restoring a backup."""
    tags = {each.etag for each in (VERSION, replace(VERSION, who="bob"), replace(VERSION, version=4))}
    assert len(tags) == 3
    assert all(tag.startswith(('"3-', '"4-')) and tag.endswith('"') for tag in tags)


def test_a_version_that_is_refused_now() -> None:
    """A stored version that is invalid by now can still be read and corrected; its warnings have the reason."""
    old = replace(VERSION, document='{"rules":[{"assign":"a"}],"values":{"a":{},"b":{}}}')
    assert warnings_about(old) == (CategoryProblem("rules[0].match", "this key is required"),)
    assert counts_of(old) == {"rules": 1, "values": 2}
    assert counts_of(replace(VERSION, document=None)) == {"rules": 0, "values": 0}


def shown(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the differences between two documents."""
    written = replace(VERSION, document=editing._text(parse_category("team", before)))
    return [str(each) for each in differences(written, parse_category("team", after))]


def test_differences() -> None:
    """Differences cover rules by id or content, their order, values, the default and the steps."""
    one, two = {**RULE, "id": "one"}, {**RULE, "id": "two", "match": {"topic": ["x"]}}
    values: dict[str, Any] = {"payments": {}, "b": {"name": "B"}}
    assert shown({"rules": [one, RULE]}, {"rules": [one, RULE], "values": {}}) == []
    assert shown({"rules": [one, two, RULE]}, {"rules": [RULE, two, one]}) == ["~ the order of the rules"]
    assert shown({"rules": [one, RULE, RULE]}, {"rules": [{**one, "assign": "x"}, two, RULE]}) == [
        '~ rule one: {"match": {"topic": ["pay.*"]}, "assign": "x"}',
        '+ rule two: {"match": {"topic": ["x"]}, "assign": "payments"}',
        '- rule: {"match": {"topic": ["pay.*"]}, "assign": "payments"}',
    ]
    assert shown({"values": values}, {"values": {"b": {}, "c": None}, "default": "c"}) == [
        "~ value b",
        "+ value c",
        "- value payments",
        "~ default: UNASSIGNED → c",
    ]
    assert shown({}, {"share": [{"from": "a", "to": "*", "by": "even"}]}) == ["~ share: 1 step"]
    long = {"match": {"topic": [f"topic-{n}" for n in range(99)]}, "assign": "a"}
    (line,) = shown({}, {"rules": [long]})
    assert (len(line), line[-1]) == (169, "…")


FILE = """\
# comments are the user's own
cost_categories:
  zone:
    values: {"no": {name: "012", gl: {account: "54100"}}, yes: {valid_from: 2026-01-01}}
    rules:
      - match: {any: [{identity: sa-1}, {not: {topic: {regex: '^a\\.'}}}]}
        split: {"no": 33.3, yes: "66.7"}
        reason: "Zürich: ${x}"
  area: {}
"""


def written(categories: list[CostCategory]) -> str:
    """Return the file of these categories."""
    return categories_yaml(CategoryVersion(each.key, 1, _text(each), "ann", NOW, None) for each in categories)


def test_what_is_exported_is_read_again() -> None:
    """Exported categories read back unchanged: texts that look like numbers, booleans or variables stay texts."""
    categories = read_categories(FILE)
    assert [each.key for each in categories] == ["zone", "area"]
    text = written(categories)
    assert read_categories(text) == categories
    assert written(read_categories(text)) == text
    assert "reason: 'Zürich: ${x}'" in text


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["cost_categories: this key is required, with a mapping of categories"]),
        ("cost_categories: []", ["cost_categories: this key is required, with a mapping of categories"]),
        ("cost_categories: {a: {}, a: {}}", ["cost_categories.a: this key is a duplicate (line 1)"]),
        (
            "cost_categories:\n  1a: {}\n  b:\n  c:\n    rules:\n    - {}\n    default: 1\n",
            [
                "cost_categories.1a: the key '1a' should start with a letter and have at most 64 letters, digits, _ or "
                "- (line 2)",
                "cost_categories.b: should be a mapping with the keys default, values, sets, rules, share (line 3)",
                "cost_categories.c.default: should be a text; quote numbers, dates, true and false (line 7)",
                "cost_categories.c.rules[0].match: this key is required (line 6)",
                "cost_categories.c.rules[0]: needs assign or split (line 6)",
            ],
        ),
    ],
)
def test_every_problem_has_a_place(text: str, problems: list[str]) -> None:
    """Every problem has the key and the line of the file."""
    with pytest.raises(ConfigurationError) as error:
        read_categories(text)
    assert [str(each) for each in error.value.problems] == problems


@pytest.mark.extensive
def test_large_files() -> None:
    """A file of categories may be larger than a configuration."""
    rules = "".join(f"      - {{match: {{identity: [sa-{n}, sb-{n}]}}, assign: v{n}}}\n" for n in range(4999))
    (category,) = read_categories(f"cost_categories:\n  a:\n    rules:\n{rules}")
    assert len(category.rules) == 4999
