"""The architecture page refers to existing functions."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(chargeback\.[\w.]+)`", PAGE)))


@pytest.mark.parametrize("name", NAMES)
def test_every_named_function_exists(name: str) -> None:
    """Every dotted name resolves to a callable with a docstring."""
    found = pkgutil.resolve_name(name)
    assert callable(found)
    assert found.__doc__


@pytest.mark.parametrize("heading", ["How a billing line is processed", "How a request is handled"])
def test_a_section_has_at_most_twelve_steps(heading: str) -> None:
    """Steps are numbered without a gap, and each ends with the name of the function that performs it."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^(\d+)\. \*\*.+\n(?:   +[^`\n]+\n)*   +`(chargeback\.[\w.]+)`$", section, re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert len(steps) == len(re.findall(r"^\d+\. ", section, re.MULTILINE))
    assert 1 < len(steps) <= 12
