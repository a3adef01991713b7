"""Pages show the committed results, without manual changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.page import SHOWN, Shown


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.results.stem)
def test_pages_show_the_committed_results(shown: Shown) -> None:
    """Writing the results into the pages again changes nothing."""
    page = shown.page.read_text(encoding="utf-8")
    assert shown.written(page) == page


def test_a_page_without_a_place_is_refused() -> None:
    """Results for which the page has no place are an error."""
    with pytest.raises(ValueError, match="no place for growth"):
        replace(SHOWN[0], places={"growth": SHOWN[0].places["growth"]}).written("# Performance\n")
