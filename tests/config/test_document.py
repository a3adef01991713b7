"""Parsing of YAML without surprises."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chargeback.config.document import Document, format_key_path, parse_document
from chargeback.errors import ConfigurationError


def parsed(text: str) -> Document:
    """Return a parsed document, with some variables set."""
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
    """Only what YAML 1.2 defines as a number, a boolean or null is one; environment variables are strings."""
    assert parsed(f"key: {text}").values == {"key": expected}


def test_a_key_that_stands_twice() -> None:
    """Every repeated key is a problem with its own line."""
    found = parsed("a: 1\nb: {c: 1, c: 2}\na: 2\n").problems
    assert [str(each) for each in found] == [
        "a: this key is a duplicate (line 3)",
        "b.c: this key is a duplicate (line 2)",
    ]


def test_anchors_and_merges() -> None:
    """Anchors and merge keys work; a key of the mapping overrides a merged one."""
    document = parsed("base: &base {a: 1, b: 2}\nmine:\n  <<: *base\n  b: 3\n")
    assert document.values["mine"] == {"a": 1, "b": 3}
    assert document.problems == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [*x]", "a[0]: an alias (*) must not be inside"),
        ("a: !secret word", "a: YAML tags (!) are not supported"),
        ("a: !!python/object:os.system {}", "a: YAML tags (!) are not supported"),
        ("? [a]\n: b", "a key must be a string"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    """Recursion, tags and keys that are not strings are problems."""
    assert words in str(parsed(text).problems[0])


def test_characters_that_yaml_does_not_allow() -> None:
    """Invalid characters are syntax errors."""
    with pytest.raises(ConfigurationError, match="a character that is not allowed"):
        parsed("a: \x0e")


def test_places() -> None:
    """Paths as text and as a sequence of keys can be converted into each other."""
    document = parsed("a: {b.c: [{d: 1}]}\n")
    key_path = ("a", "b.c", 0, "d")
    assert document.at(key_path) == 1
    assert document.key_path_of("b.c[0].d", ("a",)) == key_path
    assert format_key_path(key_path) == "a.b.c[0].d"
    assert document.key_path_of("nowhere[9]", ("a",)) == ("a", "nowhere[9]")
    assert document.at(("a", "x", 3)) is None


def problem_of(text: str) -> str:
    """Return the first problem of a text that cannot be parsed."""
    with pytest.raises(ConfigurationError) as caught:
        parsed(text)
    return str(caught.value.problems[0])


def letters(count: int) -> str:
    """Return names of anchors."""
    return "abcdefghijklmnopqrstuvwxyz"[:count]


@pytest.mark.parametrize("text", ["a: " + "[" * 3000 + "]" * 3000, "".join(" " * n + "a:\n" for n in range(500))])
def test_deep_nesting(text: str) -> None:
    """Nesting deeper than the limit is refused with its position, before it exhausts the stack."""
    assert "nested deeper than 50 levels" in problem_of(text)


def test_values_without_end() -> None:
    """A few lines of aliases that expand to a billion values are refused immediately."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise(letters(10))]
    assert "expands to more than 500,000 values" in problem_of("\n".join(lines))


def test_merges_without_end() -> None:
    """Merging the same mapping repeatedly does not make it larger."""
    lines = ["a: &a {x: 1, y: 2}"]
    lines += [f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}" for before, name in pairwise(letters(20))]
    document = parsed("\n".join(lines))
    assert document.values["t"] == {"x": 1, "y": 2}
    assert document.problems == []


def test_which_merge_wins() -> None:
    """The first merged mapping has priority over later ones, and own keys over all; only mappings can be merged."""
    document = parsed("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {z: 3, <<: [*a, *b]}\n")
    assert document.values["c"] == {"x": 1, "y": 1, "z": 3}
    assert "<< requires a mapping" in str(parsed("a: {<<: text}").problems[0])
    assert parsed("a: &a {<<: *a, b: 1}").values == {"a": {"b": 1}}


@pytest.mark.parametrize("text", [r'a: "x\0y"', r'"a\0": x', r'a: "\ud800"', r'"\ud800": x'])
def test_what_nothing_can_store(text: str) -> None:
    """NUL and unpaired surrogates are refused, in values and in keys, and removed from the parsed document."""
    document = parsed(text)
    assert "must be UTF-8 text without the character NUL" in str(document.problems[0])
    for text_read in (*document.values, *document.values.values()):
        assert "\0" not in text_read
        assert text_read.encode()


def test_a_number_that_is_too_long() -> None:
    """A number of thousands of digits is refused before it is converted."""
    assert "at most 400 digits" in str(parsed("a: " + "9" * 5000).problems[0])
