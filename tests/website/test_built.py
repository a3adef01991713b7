"""Faults of a built site are detected."""

from __future__ import annotations

from pathlib import Path

import pytest
from website.built import problems


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="other.html#there">x</a><a href="https://example.com">x</a><img src="data:,x">', None),
        ('<a href="gone.html">x</a>', "index.html: gone.html leads nowhere"),
        ('<a href="other.html#gone">x</a>', "index.html: other.html#gone leads nowhere"),
        ('<a href="#gone">x</a>', "index.html: #gone leads nowhere"),
        ('<img src="gone.png">', "index.html: gone.png leads nowhere"),
        ('<script src="https://example.com/x.js"></script>', "index.html: loads https://example.com/x.js"),
        ('<link rel="stylesheet" href="//example.com/x.css">', "index.html: loads //example.com/x.css"),
        ('<img src="http://example.com/x.png">', "index.html: loads http://example.com/x.png"),
        (
            '<pre class="mermaid">x</pre>',
            "index.html: loads mermaid, which browsers would load from elsewhere: draw an SVG",
        ),
    ],
)
def test_problems_are_found(tmp_path: Path, body: str, problem: str | None) -> None:
    """Broken links and anchors, and resources loaded from another host, are reported."""
    (tmp_path / "index.html").write_text(f"<body>{body}</body>", encoding="utf-8")
    (tmp_path / "other.html").write_text('<h1 id="there">x</h1>', encoding="utf-8")
    assert problems(tmp_path) == ([] if problem is None else [problem])


def test_styles_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Pictures and styles from other hosts within styles are reported."""
    (tmp_path / "site.css").write_text('@import "https://example.com/x.css"; a{background:url(//example.com/x.png)}')
    assert problems(tmp_path) == ["site.css: loads https://example.com/x.css", "site.css: loads //example.com/x.png"]


def test_the_page_for_unknown_addresses_begins_at_the_site(tmp_path: Path) -> None:
    """The addresses of the page for unknown addresses are absolute, because it is shown at any depth."""
    (tmp_path / "404.html").write_text('<a href="/">x</a><a href="/gone.html">x</a>', encoding="utf-8")
    (tmp_path / "index.html").write_text("x", encoding="utf-8")
    assert problems(tmp_path) == ["404.html: ./gone.html leads nowhere"]
