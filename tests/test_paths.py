"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.disk import locate


@pytest.mark.parametrize(
    ("written", "expected"),
    [("data/a.db", "/etc/x/data/a.db"), ("../a", "/etc/a"), ("/a/../b", "/b"), ("./a", "/etc/x/a"), ("ä", "/etc/x/ä")],
)
def test_where_paths_lead(written: str, expected: str) -> None:
    """Relative ones start at the folder."""
    assert locate(written, Path("/etc/x")) == Path(expected)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("", "should be a path"),
        (" ", "should be a path"),
        ("a\0b", "should be a path"),
        ("~nobody-of-this-name/x", "home folder"),
        ("a" * 256, "too long"),
        ("ä" * 128, "too long"),
        ("a/" * 2000, "too long"),
        ("\ud800", "no path can have"),
    ],
)
def test_what_is_no_path(written: str, words: str) -> None:
    """The message says why and shows nothing of it."""
    with pytest.raises(ValueError, match=words):
        locate(written, Path("/etc/x"))
