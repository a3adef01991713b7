"""The parts of the browser page in the list of shipped components."""

from __future__ import annotations

import json
from pathlib import Path

from release.bundled import bundled

WEB = Path(__file__).parents[2] / "web"


def test_every_bundled_package_is_a_part() -> None:
    """The page's packages are listed with version, licence and digest; development tools are not."""
    parts = {part["name"]: part for part in bundled(WEB / "package-lock.json")}
    manifest = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    aliases = {"react": "@preact/compat"}
    assert {aliases.get(name, name) for name in manifest["dependencies"]} <= parts.keys()
    assert not {"playwright-core", "typescript", "vitest"} & parts.keys()
    preact = parts["preact"]
    assert preact["purl"] == f"pkg:npm/preact@{manifest['dependencies']['preact']}"
    assert preact["licenses"] == [{"license": {"id": "MIT"}}]
    assert [len(each["content"]) for each in preact["hashes"]] == [128]


def test_names_with_a_scope_are_written_as_package_urls_want_them() -> None:
    """The @ of a scope is escaped in package URLs."""
    purls = [part["purl"] for part in bundled(WEB / "package-lock.json")]
    assert "pkg:npm/%40tanstack/react-query@" in "".join(purls)
