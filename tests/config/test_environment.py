"""References to the environment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.config.environment import PLACEHOLDER, interpolate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain $ text {}", "plain $ text {}"),
        ("${A}", "one"),
        ("x${A}y${A}z", "xoneyonez"),
        ("${B:-two}", "two"),
        ("${EMPTY:-two}", "two"),
        ("${EMPTY}", ""),
        ("${B:-}", ""),
        ("${A:-two}", "one"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("${REF}", "${A}"),
        ("${B:-http://h:1/x}", "http://h:1/x"),
    ],
)
def test_interpolation(text: str, expected: str) -> None:
    """Variables, defaults and escapes are replaced once, and values are not looked into again."""
    result = interpolate(text, {"A": "one", "EMPTY": "", "REF": "${A}"})
    assert (result.text, result.problems) == (expected, ())


def test_a_missing_variable() -> None:
    """A variable that is not set is a problem with its name, and leaves a placeholder."""
    result = interpolate("${NOPE}", {})
    assert result.problems == ("required environment variable NOPE is not set",)
    assert result.text == PLACEHOLDER


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${1A}", "${A-x}", "${A B}"])
def test_broken_references(text: str) -> None:
    """What only looks like a reference is a problem, not silently kept."""
    assert len(interpolate(text, {"A": "1"}).problems) == 1


@given(st.text())
def test_escaped_text_comes_back(text: str) -> None:
    """Whatever text has its references escaped comes out as it was."""
    assert interpolate(text.replace("${", "$${"), {}).text == text
