"""The page about the architecture tells of functions that exist."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(chargeback\.[\w.]+)`", PAGE)))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_exists(name: str) -> None:
    """Every dotted name leads to something that can be called, and that says what it does."""
    found = pkgutil.resolve_name(name)
    assert callable(found)
    assert found.__doc__


@pytest.mark.parametrize("way", ["The way of a billing line", "The way of a request"])
def test_a_way_has_at_most_twelve_stations(way: str) -> None:
    """The stations are numbered without a gap, and each ends with the function that makes it."""
    section = PAGE.partition(f"## {way}\n")[2].partition("\n## ")[0]
    stations = re.findall(r"^(\d+)\. \*\*.+\n(?:   +[^`\n]+\n)*   +`(chargeback\.[\w.]+)`$", section, re.MULTILINE)
    assert [int(number) for number, _ in stations] == list(range(1, len(stations) + 1))
    assert len(stations) == len(re.findall(r"^\d+\. ", section, re.MULTILINE))
    assert 1 < len(stations) <= 12
