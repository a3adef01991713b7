"""Cost categories as queries see them: the documents of a tenant as of one revision, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from chargeback.categories.document import CostCategory
from chargeback.errors import UnknownCategory

CATEGORY_PREFIX: Final = "category:"

_LEVEL: Final = "@"


@dataclass(frozen=True)
class StoredCategory:
    """A cost category, and the number of its version: 0 if it is not stored."""

    category: CostCategory
    version: int = 0


@dataclass(frozen=True)
class CategoryIndex:
    """All cost categories of a tenant, by key. The place of a category is that of its key in order: in queries, the
    column ``category_<place>`` has its values."""

    by_key: Mapping[str, StoredCategory] = field(default_factory=dict)

    def place(self, key: str) -> int:
        """Return the place of a category.

        Raises:
            UnknownCategory: the tenant has none with this key.
        """
        keys = sorted(self.by_key)
        if key not in self.by_key:
            raise UnknownCategory(key, keys)
        return keys.index(key)

    def category(self, key: str) -> CostCategory:
        """Return the category with a key.

        Raises:
            UnknownCategory: the tenant has none.
        """
        self.place(key)
        return self.by_key[key].category

    def including(self, key: str, candidate: CostCategory) -> CategoryIndex:
        """Return the same categories and one more, which is not stored."""
        return replace(self, by_key={**self.by_key, key: StoredCategory(candidate)})

    def versions(self) -> Iterator[str]:
        """Yield ``key=version`` of each category, in order."""
        for key in sorted(self.by_key):
            yield f"{key}={self.by_key[key].version}"


@dataclass(frozen=True)
class CategoryName:
    """What ``category:<key>@<level>`` means: the values of a category or, at level 1, their parents, and so on."""

    key: str
    level: int = 0

    @classmethod
    def of(cls, name: str) -> CategoryName:
        """Return what a name with the prefix means; the level may be left out."""
        key, _, level = name.removeprefix(CATEGORY_PREFIX).partition(_LEVEL)
        return cls(key, int(level or 0))


def ancestors(category: CostCategory, level: int) -> dict[str, str]:
    """Return, of each value that has a parent, the value ``level`` steps above it, or the highest one."""
    return {each.key: category.at_level(each.key, level) for each in category.values if each.parent is not None}


def with_descendants(category: CostCategory, values: frozenset[str]) -> frozenset[str]:
    """Return some values and all that lie below them."""
    return values | {each.key for each in category.values if not values.isdisjoint(category.path(each.key))}
