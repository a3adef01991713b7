"""A scope: which rows a caller may see."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

#: The names that a condition may have, in addition to ``tag:<key>`` and ``category:<key>``: those of filters.
COLUMNS: Final = (
    "identity_id",
    "resource_id",
    "environment_id",
    "cluster_id",
    "product_category",
    "product_type",
)
TAG: Final = "tag:"
CATEGORY: Final = "category:"

_KEYED: Final = re.compile(rf"(?:{TAG}|{CATEGORY})[A-Za-z0-9][A-Za-z0-9_.-]{{0,127}}")


@dataclass(frozen=True)
class RowScope:
    """The rows that match every one of ``conditions``: (name, values, one of which a row has), ascending by name.

    Of a row that a cost category splits, the matching parts are visible. Without values, nothing is visible.
    """

    conditions: tuple[tuple[str, frozenset[str]], ...]

    @classmethod
    def of(cls, conditions: Mapping[str, Collection[str]]) -> RowScope:
        """Return the scope of some conditions.

        Raises:
            ValueError: rows cannot be chosen by one of the names, or there is no condition at all.
        """
        if not conditions:
            raise ValueError("needs at least one condition; leave the scope out to allow every row")
        unknown = sorted(name for name in conditions if name not in COLUMNS and not _KEYED.fullmatch(name))
        if unknown:
            raise ValueError(
                f"rows cannot be chosen by {', '.join(unknown)}; choose from {', '.join(COLUMNS)}, "
                f"{TAG}<key> and {CATEGORY}<key>"
            )
        return cls(tuple(sorted((name, frozenset(values)) for name, values in conditions.items())))

    def as_json(self) -> dict[str, list[str]]:
        """Return the conditions as the API shows them, and as a scope of the configuration is written."""
        return {name: sorted(values) for name, values in self.conditions}

    @cached_property
    def digest(self) -> str:
        """A short text for the scope, to keep by it what is made of the rows."""
        return hashlib.blake2b(repr(self.as_json()).encode(), digest_size=16).hexdigest()
