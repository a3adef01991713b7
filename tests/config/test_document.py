"""YAML without surprises."""

from __future__ import annotations

import pytest

from chargeback.config.document import Document, parse_document, spell


def parsed(text: str) -> Document:
    """A document, with some variables set."""
    return parse_document(text, {"NAME": "value", "SYNTAX": "a: [b", "NUMBER": "5", "EMPTY": ""})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no", "no"),
        ("on", "on"),
        ("012", "012"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("true", True),
        ("12", 12),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("null", None),
        ("~", None),
        ("", None),
        ('"5"', "5"),
        ("${NUMBER}", "5"),
        ("${NAME}", "value"),
        ("${EMPTY}", None),
        ('"${EMPTY}"', ""),
        ("'${SYNTAX}'", "a: [b"),
    ],
)
def test_scalars(text: str, expected: object) -> None:
    """Only what YAML 1.2 calls a number, a boolean or null is one; the environment gives texts."""
    assert parsed(f"key: {text}").values == {"key": expected}


def test_a_key_that_stands_twice() -> None:
    """Every repeated key is a problem with its own line."""
    found = parsed("a: 1\nb: {c: 1, c: 2}\na: 2\n").problems
    assert [str(each) for each in found] == ["a: this key stands twice (line 3)", "b.c: this key stands twice (line 2)"]


def test_anchors_and_merges() -> None:
    """Anchors and merge keys work; a key beside a merge overrides the merged one."""
    document = parsed("base: &base {a: 1, b: 2}\nmine:\n  <<: *base\n  b: 3\n")
    assert document.values["mine"] == {"a": 1, "b": 3}
    assert document.problems == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [*x]", "a[0]: an alias (*) must not stand inside"),
        ("a: !secret word", "a: YAML tags (!) are not understood"),
        ("a: !!python/object:os.system {}", "a: YAML tags (!) are not understood"),
        ("? [a]\n: b", "a key must be a text"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    """Recursion, tags and keys that are no texts are problems, never executed or guessed at."""
    assert words in str(parsed(text).problems[0])


def test_places() -> None:
    """A spelt path and the place it means lead to each other."""
    document = parsed("a: {b.c: [{d: 1}]}\n")
    place = ("a", "b.c", 0, "d")
    assert document.at(place) == 1
    assert document.place_of("b.c[0].d", ("a",)) == place
    assert spell(place) == "a.b.c[0].d"
    assert document.place_of("nowhere[9]", ("a",)) == ("a", "nowhere[9]")
    assert document.at(("a", "x", 3)) is None
