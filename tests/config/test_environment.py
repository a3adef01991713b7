"""References to the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.config.environment import PLACEHOLDER, interpolate, read_environment
from chargeback.errors import ConfigurationError


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
    """A broken reference is a problem, and is not kept as text."""
    assert len(interpolate(text, {"A": "1"}).problems) == 1


@given(st.text())
def test_escaped_text_comes_back(text: str) -> None:
    """A text whose references are escaped is the same when it is read."""
    assert interpolate(text.replace("${", "$${"), {}).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${B:-${A}}", "one"),
        ("${A:-${B}}", "one"),
        ("${B:-${C:-three}}", "three"),
        ("<${B:-x${A}y${C:-z}}>", "<xoneyz>"),
        ("${B:-${REF}}", "${A}"),
        ("${B:-$${A}}", "${A}"),
        ("${A:-$${B}}", "one"),
        ("${B:-{x}", "{x"),
    ],
)
def test_references_in_defaults(text: str, expected: str) -> None:
    """A default may refer to other variables, and is looked into only where it is needed."""
    result = interpolate(text, {"A": "one", "REF": "${A}"})
    assert (result.text, result.problems) == (expected, ())


def test_a_missing_variable_in_a_default() -> None:
    """It is the inner variable that is named; a default that nothing needs names none."""
    assert interpolate("${B:-${C}}", {}).problems == ("required environment variable C is not set",)
    assert interpolate("${A:-${C}}", {"A": "1", "C": "2"}).taken == (("A", "1"),)


@pytest.mark.parametrize("text", ["${B:-${C}", "${B:-${1}}", "${B:-${C:-x}", "${B:-" * 5000])
def test_broken_defaults(text: str) -> None:
    """A default that does not end, or is nested without end, is a problem, and never becomes an unintended text."""
    assert interpolate(text, {"C": "x"}).problems


def test_an_unreadable_env_file(tmp_path: Path) -> None:
    """A `.env` that is no text is a mistake of the configuration."""
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe\n")
    with pytest.raises(ConfigurationError, match=r"\.env is not UTF-8 text"):
        read_environment(tmp_path)
