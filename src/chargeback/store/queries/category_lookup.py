"""The cost categories of one reader: the documents, and where their assignments come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from chargeback.categories.document import CostCategory
from chargeback.categories.resolve import Names, Tags
from chargeback.errors import UnknownCategory
from chargeback.model.dated import DatedValue, Period
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.measurements import MeasuredDays, WithOwners
from chargeback.store.queries.scan import Condition
from chargeback.store.queries.selection import CategoryFilter
from chargeback.store.queries.tag_index import TagIndex

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


def ancestors(category: CostCategory, level: int) -> dict[str, list[DatedValue]]:
    """Return, of each value that has a parent, the value ``level`` steps above it, or the highest one, on the days on
    which it has one."""
    found: dict[str, list[DatedValue]] = {}
    for each in category.hierarchies:
        for value in each.parents:
            found.setdefault(value, []).append(DatedValue(each.at_level(value, level), each.during))
    return found


def with_descendants(category: CostCategory, values: frozenset[str]) -> dict[Period, frozenset[str]]:
    """Return some values and all that lie below them, for periods that cover all of time."""
    return {
        each.during: values | {value for value in each.parents if not values.isdisjoint(each.path(value))}
        for each in category.hierarchies
    }


class _NoNames:
    """Nothing has a name."""

    def names(self, entity_type: str) -> Mapping[str, str]:
        return {}


def _none(_dataset: Dataset, key: str) -> Assignments:
    raise LookupError(f"there is no cost category {key}")


def _as_stored(stored: MeasuredDays) -> MeasuredDays:
    return stored


@dataclass(frozen=True)
class CategoryLookup:
    """The categories of a tenant, and the tags and names that their rules see; ``assignments`` are those of one of them
    to the rows of a dataset, by its key. ``with_owners`` completes the measurements that their steps look at."""

    index: CategoryIndex = field(default_factory=CategoryIndex)
    assignments: Callable[[Dataset, str], Assignments] = _none
    tags: Tags = field(default_factory=TagIndex)
    names: Callable[[], Names] = _NoNames
    with_owners: WithOwners = _as_stored

    def columns(self, dataset: Dataset, key: str) -> tuple[str, ...]:
        """Return the columns of a dataset that the rules of a category see."""
        return self.assignments(dataset, key).columns

    def condition(self, filters: tuple[CategoryFilter, ...]) -> Condition:
        """Return filters as SQL over the columns of the categories; a value includes those below it.

        Raises:
            UnknownCategory: the tenant has none of that key.
        """
        condition = Condition()
        for number, each in enumerate(filters):
            place = self.index.place(each.key)
            values = with_descendants(self.index.category(each.key), each.values)
            found = _on_days(f"category_{place}", values, f"category{place}_{number}")
            condition &= replace(found, clauses=(f"({found.sql}) IS NOT TRUE",)) if each.excludes else found
        return condition


def _on_days(column: str, values: Mapping[Period, frozenset[str]], name: str) -> Condition:
    """Return the condition that a column has one of the values of the row's UTC day; ``name`` begins the names of its
    parameters."""
    clauses: list[str] = []
    parameters: dict[str, object] = {}
    for number, (during, wanted) in enumerate(values.items()):
        one = name if len(values) == 1 else f"{name}_{number}"
        limits = ((">=", during.first), ("<", during.end))
        days = [f"date {operator} DATE '{day}'" for operator, day in limits if day is not None]
        clauses.append(" AND ".join([*days, f"{column} IN (SELECT unnest(${one}::VARCHAR[]))"]))
        parameters[one] = sorted(wanted)
    if len(clauses) == 1:
        return Condition((clauses[0],), parameters)
    return Condition((f"({' OR '.join(clauses)})",), parameters, frozenset({"date"}))


NO_CATEGORIES: Final = CategoryLookup()
