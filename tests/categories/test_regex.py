"""Regexes of users: groups without a name, and where a wrong regex is wrong."""

from __future__ import annotations

import pytest

from chargeback.categories.regex import compiled_groups, mistake_in, without_unnamed_groups


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
    """Only parentheses that open a group are changed; quoted ones are texts."""
    assert without_unnamed_groups(regex) == changed
    assert mistake_in(regex) is None


def test_the_names_of_groups_are_known() -> None:
    """Both ways to write a name count."""
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
