"""The pages of the site: those of ``docs/``, those of the project, and what they link to.

Only the standard library and PyYAML are needed: the build has an environment of its own, and the tests of the service
read the navigation too.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SETTINGS = ROOT / "website" / "site.yaml"
#: Pages of the project that lie outside of ``docs/``, and their names on the site.
PROJECT = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "reporting.md",
}
#: The folder of the site for files of the repository that pages link to.
FILES = Path("files")
_LINK = re.compile(r"(\]\()(?!https?://|mailto:|#)([^)\s#]*)(#[^)]*)?(\))")
#: A picture that is there for dark pages, too.
_PICTURE = re.compile(r"(!\[[^]]*\]\([^)]*)-light-(\d+\.png)\)")
_IN_BOTH_THEMES = r"\1-light-\2#only-light) \1-dark-\2#only-dark)"
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def settings() -> dict[str, Any]:
    """Return the settings of the site as they are written."""
    found: dict[str, Any] = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    return found


def listed(nav: list[Any]) -> Iterator[str]:
    """Yield the pages that a navigation names, without the folder of decisions."""
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for content in entry.values():
                yield from listed(content) if isinstance(content, list) else ()


def missing(nav: list[Any]) -> set[str]:
    """Return the pages that are not in the navigation, and the names in it that are not those of a page.

    Decision records are listed by themselves.
    """
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent.name != "decisions"}
    return (pages | set(PROJECT.values())) ^ set(listed(nav))


def decisions() -> list[Path]:
    """Return the decision records, in order."""
    return sorted((DOCS / "decisions").glob("[0-9]*.md"))


def title_of(page: Path) -> str:
    """Return the first heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def stage(folder: Path) -> None:
    """Write everything that the site is built from into an empty folder, with links that hold there.

    Raises:
        FileNotFoundError: A page links to something that does not exist.
    """
    for file in DOCS.rglob("*"):
        if file.is_file() and file.suffix != ".md":
            _copy(file, folder / file.relative_to(DOCS))
    for page in DOCS.rglob("*.md"):
        _write(folder / page.relative_to(DOCS), _relinked(page, page.relative_to(DOCS), folder))
    for name, place in PROJECT.items():
        if name != "README.md":
            _write(folder / place, _relinked(ROOT / name, Path(place), folder))
    lines = [f"- [{title_of(record)}]({record.name})" for record in decisions()]
    _write(
        folder / "decisions" / "index.md",
        "# Decisions\n\nWhat a newcomer would question, and why it is so.\n\n" + "\n".join(lines) + "\n",
    )
    _copy(ROOT / "website" / "site.css", folder / "assets" / "site.css")
    _copy(ROOT / "web" / "public" / "icon.svg", folder / "assets" / "icon.svg")


def navigation(nav: list[Any]) -> list[Any]:
    """Return the navigation with the decision records in the place of their folder."""
    records: list[Any] = ["decisions/index.md", *(f"decisions/{record.name}" for record in decisions())]
    return [
        {name: records} if content == "decisions" else {name: content}
        for entry in nav
        for name, content in entry.items()
    ]


def _relinked(page: Path, place: Path, folder: Path) -> str:
    """Return the text of a page at a place of the site, with links that lead to the same things from there."""

    def link(found: re.Match[str]) -> str:
        opened, target, anchor, closed = found.groups(default="")
        return opened + _target(page, place, target, folder) + anchor + closed

    parts = _FENCE.split(page.read_text(encoding="utf-8"))
    return "".join(
        part if number % 2 else _PICTURE.sub(_IN_BOTH_THEMES, _LINK.sub(link, part))
        for number, part in enumerate(parts)
    )


def _target(page: Path, place: Path, target: str, folder: Path) -> str:
    """Return where a link of a page leads on the site, relative to the place of the page."""
    file = (page.parent / target).resolve()
    if file == DOCS / "decisions":
        there = Path("decisions/index.md")
    elif file.is_relative_to(DOCS):
        there = file.relative_to(DOCS)
    elif str(file.relative_to(ROOT)) in PROJECT:
        there = Path(PROJECT[str(file.relative_to(ROOT))])
    elif file.is_dir():
        there = FILES / f"{file.name}.zip"
        _zip(file, folder / there)
    else:
        # The generator leaves out folders whose name begins with a dot.
        there = FILES.joinpath(*(part.lstrip(".") for part in file.relative_to(ROOT).parts))
        _copy(file, folder / there)
    return relpath(there, place.parent)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _copy(source: Path, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, file)


def _zip(source: Path, file: Path) -> None:
    """Pack a folder, without what Python and tools leave in it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(source.rglob("*")):
            inside = each.relative_to(source.parent)
            if each.is_file() and not any(part.startswith((".", "__pycache__")) for part in inside.parts):
                archive.write(each, inside)
