"""Which texts a pattern matches."""

from __future__ import annotations

from typing import Any

import pytest

from chargeback.categories.matching import Texts, captures, matching_texts
from chargeback.categories.reading import Reader
from chargeback.categories.reading_matches import read_pattern

TEXTS = Texts({"pay", "pay.orders", "a.pay", "pay*", "p?y", "PAY", "pay\nx", "größe"})


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("pay", {"pay"}),
        ("pay*", {"pay", "pay.orders", "pay*", "pay\nx"}),
        ("*pay", {"pay", "a.pay"}),
        ("*pay*", {"pay", "pay.orders", "a.pay", "pay*", "pay\nx"}),
        ("p?y", {"pay", "p?y"}),
        ("pay?*", {"pay.orders", "pay*", "pay\nx"}),
        ("*.*", {"pay.orders", "a.pay"}),
        ("gr??e", {"größe"}),
        ("*", TEXTS.known),
        ({"exact": "pay*"}, {"pay*"}),
        ({"exact": ["p?y", "PAY", "none"]}, {"p?y", "PAY"}),
        ({"prefix": ["pay.", "a"]}, {"pay.orders", "a.pay"}),
        ({"prefix": "pay*"}, {"pay*"}),
        ({"glob": "pay"}, {"pay"}),
        ({"regex": "pay$"}, {"pay", "a.pay"}),
        ({"regex": "(?i)^pay$"}, {"pay", "PAY"}),
        ({"regex": ["^größe$", r"\?"]}, {"größe", "p?y"}),
        (["pay", "*.orders"], {"pay", "pay.orders"}),
    ],
)
def test_a_pattern_matches(pattern: Any, matched: set[str]) -> None:
    """Texts and lists match exactly, or as globs if they contain a star or a question mark; regexes match anywhere."""
    read = read_pattern(Reader(), pattern, "")
    assert read is not None
    assert matching_texts(read, TEXTS) == matched


def test_the_first_capture_of_a_name_counts() -> None:
    """Unnamed groups, empty captures and texts that do not match capture nothing."""
    read = read_pattern(Reader(), {"regex": ["^(?P<a>x*)(y|[(])", "(?P<a>y)(?P<b>z)?"]}, "")
    assert read is not None
    assert captures(read, Texts({"xy", "yz", "q"})) == {"xy": {"a": "x"}, "yz": {"a": "y", "b": "z"}}
