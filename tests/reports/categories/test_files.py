"""YAML files of cost categories."""

from __future__ import annotations

import pytest

from chargeback.categories.document import CostCategory
from chargeback.errors import ConfigurationError
from chargeback.reports.categories.editing import _text, categories_yaml, read_categories
from chargeback.store.control.cost_categories import CategoryVersion
from tests.support.clock import NOW

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
    """The file of these categories."""
    return categories_yaml(CategoryVersion(each.key, 1, _text(each), "ann", NOW, None) for each in categories)


def test_what_is_exported_is_read_again() -> None:
    """Texts that look like numbers, booleans or variables stay texts; dates are dates."""
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
    """The key, and the line of the file."""
    with pytest.raises(ConfigurationError) as error:
        read_categories(text)
    assert [str(each) for each in error.value.problems] == problems


@pytest.mark.extensive
def test_large_files() -> None:
    """A category may be larger than a configuration is."""
    rules = "".join(f"      - {{match: {{identity: [sa-{n}, sb-{n}]}}, assign: v{n}}}\n" for n in range(4999))
    (category,) = read_categories(f"cost_categories:\n  a:\n    rules:\n{rules}")
    assert len(category.rules) == 4999
