"""Pages show the committed results, and nothing that was typed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.page import SHOWN, Shown


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.results.stem)
def test_pages_show_the_committed_results(shown: Shown) -> None:
    """Writing them again changes nothing."""
    page = shown.page.read_text(encoding="utf-8")
    assert shown.written(page) == page


def test_a_page_without_a_place_is_refused() -> None:
    """Figures are not lost silently."""
    with pytest.raises(ValueError, match="no place for growth"):
        replace(SHOWN[0], places={"growth": SHOWN[0].places["growth"]}).written("# Performance\n")
