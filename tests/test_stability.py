"""The page about the public interface lists existing names."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "stability.md").read_text(encoding="utf-8")
MODULES = re.findall(r"^\| `(chargeback[\w.]+)` \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("module", "names"), MODULES, ids=[module for module, _ in MODULES])
def test_what_plugins_may_import_exists(module: str, names: str) -> None:
    """Every name exists in its module, and classes and functions have a docstring."""
    found = import_module(module)
    for name in re.findall(r"`(\w+)`", names):
        assert hasattr(found, name), name


def test_what_the_example_imports_is_public() -> None:
    """The tutorial imports only public names."""
    public = {(module, name) for module, names in MODULES for name in re.findall(r"`(\w+)`", names)}
    sources = (Path(__file__).parents[1] / "examples" / "acme-ecosystem").rglob("*.py")
    imported = {
        (module, name.strip())
        for source in sources
        for module, names in re.findall(r"^from (chargeback[\w.]*) import (.+)$", source.read_text(), re.MULTILINE)
        for name in names.split(",")
    }
    assert imported
    assert imported - public == set()
