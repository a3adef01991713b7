"""The cost categories of one reader: the documents, and where their assignments come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from chargeback.categories.resolve import Names, Tags
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.category_index import CategoryIndex, with_descendants
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.measurements import MeasuredDays, WithOwners
from chargeback.store.queries.scan import Condition
from chargeback.store.queries.selection import CategoryFilter
from chargeback.store.queries.tag_index import TagIndex


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
            values = with_descendants(self.index.category(each.key), each.values)
            sql = f"category_{self.index.place(each.key)} IN (SELECT unnest($category{number}::VARCHAR[]))"
            clause = f"({sql}) IS NOT TRUE" if each.excludes else sql
            condition &= Condition((clause,), {f"category{number}": sorted(values)})
        return condition


NO_CATEGORIES: Final = CategoryLookup()
