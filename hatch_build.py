"""Refuse a package without the browser page."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # type: ignore[import-not-found]

_PAGE = Path("src/chargeback/page/static/index.html")


class PageIsBuilt(BuildHookInterface):  # type: ignore[misc]
    """Stop a build of a wheel or a source distribution if the page is missing; an editable install needs none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Check before anything is packed."""
        if version != "editable" and not (Path(self.root) / _PAGE).is_file():
            raise SystemExit(f"{_PAGE} is missing: run `make page` first, so that the package holds the browser page")
