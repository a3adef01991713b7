"""Regexes of users: unnamed groups, and the position of a mistake."""

from __future__ import annotations

import pytest

from chargeback.categories.regex import (
    MAX_COMPILED_SIZE,
    compiled_groups,
    compiled_size,
    mistake_in,
    without_unnamed_groups,
)


@pytest.mark.parametrize(
    ("regex", "changed"),
    [
        ("(a)(?P<x>(b))", "(?:a)(?P<x>(?:b))"),
        (r"\((a)", r"\((?:a)"),
        ("[(](a)[^](]", "[(](?:a)[^](]"),
        (r"[\](](a)", r"[\](](?:a)"),
        ("[[:alpha:](](a)", "[[:alpha:](](?:a)"),
        (r"\Q(\E(a)", r"\Q(\E(?:a)"),
        ("(?i)(?:a)(?i:b)(?<n>c)", "(?i)(?:a)(?i:b)(?<n>c)"),
    ],
)
def test_groups_without_a_name_do_not_capture(regex: str, changed: str) -> None:
    """Parentheses that open an unnamed group are made non-capturing; escaped ones do not change."""
    assert without_unnamed_groups(regex) == changed
    assert mistake_in(regex) is None


def test_the_names_of_groups_are_known() -> None:
    """The names of groups are found in both notations."""
    assert compiled_groups("(?P<team>a)(b)(?<stage>c)") == {"team", "stage"}


@pytest.mark.parametrize(
    ("regex", "mistake"),
    [
        ("a(b(c)", "missing ) at position 2"),
        ("a)(", "unexpected ) at position 2"),
        ("ab[c", "missing ] at position 3: [c"),
        ("a(?=x)", "invalid perl operator at position 2: (?="),
        ("x**", "bad repetition operator at position 2: **"),
        ("*a", "no argument for repetition operator at position 1: *"),
        ("a{2000}", "invalid repetition size at position 2: {2000}"),
        ("[b-a]", "invalid character class range at position 2: b-a"),
        (r"(a)\1", r"invalid escape sequence at position 4: \1"),
        ("ab\\", "trailing \\ at position 3"),
        (r"a\C", r"\C, a single byte, cannot be used (position 2)"),
    ],
)
def test_a_mistake_has_its_position(regex: str, mistake: str) -> None:
    """Positions count characters from 1."""
    assert mistake_in(regex) == mistake


@pytest.mark.parametrize(
    ("regex", "size"),
    [
        (r"^pay-[a-z0-9-]+\.(prod|dev)$", 17),
        (r"[A-Za-z0-9_.-]{1,255}", 509),
        (".{1,255}", 1274),
        ("[^-_.]{1,255}", 1274),
        ("(?:ab){3}c{2,}", 10),
        ("(?P<x>a{2}){3}", 6),
        ("a{2}{3}", 6),
        (r"(\)|[)]){3}", 9),
        (r"\Qa{9}\E", 4),
        ("я{3}[я-ю]", 21),
        (r"\pL\p{Greek}[\pL-]", 301),
        ("x{0}", 1),
        ("a)b{2}", 3),
        ("(a(b{3}", 4),
        ("a{,9}", 5),
    ],
)
def test_repetitions_are_unfolded(regex: str, size: int) -> None:
    """The size counts the regex with its repetitions unfolded, whether the regex is valid or not."""
    assert compiled_size(regex) == size


@pytest.mark.parametrize(
    "regex",
    [
        "a{1,1000}" * 50,
        "(a?){1,1000}",
        "((a?){1,30}){1,30}b",
        "(((a{1,10}){1,10}){1,10})",
        r"\pL{300}",
        r"[\pL\d]{1,63}",
        "(.?){1,330}",
    ],
)
def test_regexes_that_would_take_seconds_are_too_large(regex: str) -> None:
    """Each of these regexes would take from half a second to minutes for some thousand names."""
    assert compiled_size(regex) > MAX_COMPILED_SIZE
