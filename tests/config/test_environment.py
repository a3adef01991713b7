"""References to environment variables."""

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
    """Variables, defaults and escapes are replaced once; values are not interpolated again."""
    result = interpolate(text, {"A": "one", "EMPTY": "", "REF": "${A}"})
    assert (result.text, result.problems) == (expected, ())


def test_a_missing_variable() -> None:
    """An unset variable is a problem with its name, and leaves a placeholder."""
    result = interpolate("${NOPE}", {})
    assert result.problems == ("required environment variable NOPE is not set",)
    assert result.text == PLACEHOLDER


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${1A}", "${A-x}", "${A B}"])
def test_broken_references(text: str) -> None:
    """An invalid reference is a problem, and is not kept as text."""
    assert len(interpolate(text, {"A": "1"}).problems) == 1


@given(st.text())
def test_escaped_text_comes_back(text: str) -> None:
    """Text whose references are escaped is read back unchanged."""
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
    """A default may refer to other variables, and is evaluated only if it is used."""
    result = interpolate(text, {"A": "one", "REF": "${A}"})
    assert (result.text, result.problems) == (expected, ())


def test_a_missing_variable_in_a_default() -> None:
    """The problem names the inner variable; a default that is not used is not checked."""
    assert interpolate("${B:-${C}}", {}).problems == ("required environment variable C is not set",)
    assert interpolate("${A:-${C}}", {"A": "1", "C": "2"}).taken == (("A", "1"),)


@pytest.mark.parametrize("text", ["${B:-${C}", "${B:-${1}}", "${B:-${C:-x}", "${B:-" * 5000])
def test_broken_defaults(text: str) -> None:
    """An unterminated default, or one that is nested too deeply, is a problem and not taken as text."""
    assert interpolate(text, {"C": "x"}).problems


def test_an_unreadable_env_file(tmp_path: Path) -> None:
    """A `.env` that is not text is a problem of the configuration."""
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe\n")
    with pytest.raises(ConfigurationError, match=r"\.env is not UTF-8 text"):
        read_environment(tmp_path)
