"""Checks of the built site: it is complete, and loads nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes by which a page loads something, or leads somewhere.
_ADDRESSES = {"href", "src", "srcset", "data", "poster"}
_FOREIGN = re.compile(r"^(?:https?:)?//")
_IN_STYLES = re.compile(r"url\(\s*['\"]?((?:https?:)?//[^'\")]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)")


class Page(HTMLParser):
    """The anchors of a page, what it leads to, and what it loads from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.leads: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and anchors of an element."""
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.anchors.add(value)
            elif name == "class" and "mermaid" in (value or "").split():
                self.loads.add("mermaid, which browsers would load from elsewhere: draw an SVG")
            elif name in _ADDRESSES and value is not None:
                self._address(tag, value)

    def _address(self, tag: str, value: str) -> None:
        if not _FOREIGN.match(value):
            if not urlsplit(value).scheme:
                self.leads.add(value)
        elif tag != "a":
            self.loads.add(value)


def problems(site: Path) -> list[str]:
    """Return what is wrong with a site: links and anchors that lead nowhere, and what it loads from elsewhere."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        name = file.relative_to(site)
        found += [f"{name}: loads {address}" for address in sorted(page.loads)]
        # The page for unknown addresses is shown at any depth; its addresses begin at the site.
        leads = {f".{address}" for address in page.leads} if name.name == "404.html" else page.leads
        found += [f"{name}: {address} leads nowhere" for address in sorted(leads) if not _leads(file, address, pages)]
    for style in sorted(site.rglob("*.css")):
        for one, other in _IN_STYLES.findall(style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site)}: loads {one or other}")
    return found


def _leads(file: Path, address: str, pages: dict[Path, Page]) -> bool:
    """Return whether an address of a page leads to a file, and to an anchor in it if it names one."""
    parts = urlsplit(address)
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if there.is_dir():
        there /= "index.html"
    if not there.is_file():
        return False
    anchor = unquote(parts.fragment)
    return not anchor or there not in pages or anchor in pages[there].anchors or anchor.startswith("__")
