"""The dependencies of the service: known licences, and only locked files."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements" / "runtime.lock"
#: Licences that allow redistribution with an Apache-2.0 service, as the packages spell them.
ALLOWED = re.compile(
    r"apache|mit\b|bsd|psf|python software foundation|isc\b|mpl|mozilla|lgpl|lesser general|zlib|unlicense|cc0",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(r"\bAGPL|\bGPL-|affero|GNU General Public", re.IGNORECASE)


def licence_of(package: str) -> str:
    """Return the licence that a package declares."""
    metadata = distribution(package).metadata
    classifiers = [each for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")]
    expressions = metadata.get_all("License-Expression") or []
    first_lines = [text.splitlines()[0] for text in metadata.get_all("License") or [] if text]
    return " ".join([*expressions, *first_lines, *classifiers])


def locked() -> list[str]:
    """Return the packages of the lock that apply to this platform."""
    names = re.findall(r"^([a-z0-9-]+)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    found = []
    for name in sorted(set(names)):
        try:
            distribution(name)
        except PackageNotFoundError:
            continue
        found.append(name)
    return found


def test_licences_allow_redistribution() -> None:
    """Every package that the service needs, directly or not, has a known licence."""
    assert len(locked()) > 30
    licences = {name: licence_of(name) for name in locked()}
    unknown = {name: text for name, text in licences.items() if not ALLOWED.search(text) or FORBIDDEN.search(text)}
    assert unknown == {}


def test_every_locked_file_has_a_hash() -> None:
    """Every file in the lock has a hash."""
    entries = re.split(r"\n(?=\S)", LOCK.read_text(encoding="utf-8").strip())
    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry or "==" not in entry] == []
