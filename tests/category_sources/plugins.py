"""A third-party source, installed as its own distribution."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from chargeback.category_sources.discovery import discover_sources

TINY = dedent(
    """\
    from decimal import Decimal

    from chargeback.category_sources.contract import CategoryEntry, CategorySource, RegisteredValue, SourceContent
    from chargeback.errors import SourceUnavailable


    class Tiny(CategorySource):
        def read(self, path, key):
            if path.name == "away":
                raise SourceUnavailable("nobody answers")
            if path.name == "broken":
                raise LookupError("no such thing")
            return SourceContent([CategoryEntry("topic", path.name, key)], (RegisteredValue(key),), ["one note"])


    source = Tiny()
    """
)


def install(folder: Path, source: str = TINY, name: str = "tiny", module: str = "tiny_source") -> None:
    """Install a distribution in ``folder`` with the entry point ``name`` for ``source``."""
    (folder / f"{module}.py").write_text(source)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[chargeback.category_sources]\n{name} = {module}:source\n")


@contextmanager
def installed(folder: Path, source: str = TINY, name: str = "tiny") -> Iterator[None]:
    """Install the distribution in this process while the context is open."""
    install(folder, source, name, f"{name}_source")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        discover_sources.cache_clear()
        try:
            yield
        finally:
            discover_sources.cache_clear()
            sys.modules.pop(f"{name}_source", None)
