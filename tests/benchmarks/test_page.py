"""The page about performance shows the committed results, and nothing that was typed by hand."""

from __future__ import annotations

import json

import pytest
from benchmarks.page import PAGE, written
from benchmarks.report import RESULTS


def test_the_page_shows_the_committed_results() -> None:
    """Writing it again changes nothing."""
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, json.loads(RESULTS.read_text(encoding="utf-8"))) == page


def test_a_page_without_a_place_is_refused() -> None:
    """Figures are not lost silently."""
    with pytest.raises(ValueError, match="no place for figures"):
        written("# Performance\n", json.loads(RESULTS.read_text(encoding="utf-8")))
