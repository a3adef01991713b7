"""The pages of the site, and the targets of their links."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from website.pages import DOCS, ROOT, decisions, listed, missing, navigation, settings, stage


def test_the_navigation_has_every_page() -> None:
    """website/site.yaml lists every page of docs/ exactly once, with an existing name."""
    nav = settings()["nav"]
    assert missing(nav) == set()
    pages = list(listed(nav))
    assert len(pages) == len(set(pages))


def test_a_page_that_is_not_in_the_navigation_is_found() -> None:
    """A page that is missing in the navigation, or no longer exists, is reported."""
    nav = [entry for entry in settings()["nav"] if "Operations" not in entry]
    assert "operations.md" in missing(nav)
    assert missing([*settings()["nav"], {"More": ["gone.md"]}]) == {"gone.md"}


def test_decisions_are_listed_by_themselves() -> None:
    """The navigation lists all decision records in order, after the page that lists them."""
    (records,) = (
        content for entry in navigation(settings()["nav"]) for name, content in entry.items() if name == "Decisions"
    )
    assert records == ["decisions/index.md", *(f"decisions/{record.name}" for record in decisions())]
    assert len(decisions()) > 15


def test_staged_links_lead_within_the_site(tmp_path: Path) -> None:
    """All link targets are on the site: pages, pictures, files of the repository, and folders as archives."""
    stage(tmp_path)
    for page in tmp_path.rglob("*.md"):
        text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
            assert (page.parent / target).resolve().is_relative_to(tmp_path), (page, target)
            assert (page.parent / target).is_file(), (page, target)
    assert (tmp_path / "files" / "deploy" / "nginx.conf").read_bytes() == (ROOT / "deploy" / "nginx.conf").read_bytes()
    with zipfile.ZipFile(tmp_path / "files" / "acme-ecosystem.zip") as archive:
        assert "acme-ecosystem/pyproject.toml" in archive.namelist()
        assert not [name for name in archive.namelist() if "__pycache__" in name]


def test_pictures_follow_the_theme(tmp_path: Path) -> None:
    """Pictures of the page exist in a light and a dark version."""
    stage(tmp_path)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.count("-light-1440.png#only-light)") == page.count("-dark-1440.png#only-dark)") > 10


def test_nothing_needs_a_script_from_elsewhere() -> None:
    """Diagrams are pictures, because a browser would load mermaid from another host."""
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        assert "```mermaid" not in page.read_text(encoding="utf-8"), page
