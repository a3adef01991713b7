"""What queries join to the facts, kept between requests: tags, names, clusters, and cost categories.

A :class:`CategoryLookup` has the cost categories of one reader: their documents, and where their assignments come from.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.categories.compiled import CLUSTER
from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.categories.resolve import Names, Tags
from chargeback.errors import CategoryError, UnknownCategory
from chargeback.model.dated import DatedValue, Period
from chargeback.model.inventory import KAFKA_CLUSTER
from chargeback.model.money import parse_json
from chargeback.store.control.closings import Books
from chargeback.store.control.cost_categories import categories_revision, list_categories
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, every_name, read_enclosing
from chargeback.store.control.revisions import read_entity_revisions
from chargeback.store.queries.assignments import AssignmentCache, Assignments
from chargeback.store.queries.clusters import ClusterCache
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import KeptTables
from chargeback.store.queries.measurements import WithOwners, with_owners
from chargeback.store.queries.revision_cache import RevisionCache
from chargeback.store.queries.scan import Condition
from chargeback.store.queries.selection import CategoryFilter
from chargeback.store.queries.tag_index import TagCache, TagIndex
from chargeback.store.queries.visible_sums import VisibleEntities, VisibleSumsCache
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)

CATEGORY_PREFIX: Final = "category:"
_LEVEL: Final = "@"
_KINDS = {each.entity_type: each for each in (IDENTITIES, RESOURCES)}


@dataclass(frozen=True)
class StoredCategory:
    """A cost category, and the number of its version: 0 if it is not stored."""

    category: CostCategory
    version: int = 0


@dataclass(frozen=True)
class CategoryIndex:
    """All cost categories of a tenant, by key. The place of a category is the position of its key in order: in queries,
    the column ``category_<place>`` has its values."""

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
        """Return the categories with one more, which is not stored."""
        return replace(self, by_key={**self.by_key, key: StoredCategory(candidate)})

    def versions(self) -> Iterator[str]:
        """Yield ``key=version`` of each category, in order."""
        for key in sorted(self.by_key):
            yield f"{key}={self.by_key[key].version}"


@dataclass(frozen=True)
class CategoryName:
    """The meaning of ``category:<key>@<level>``: the values of a category or, at level 1, their parents, and so on."""

    key: str
    level: int = 0

    @classmethod
    def of(cls, name: str) -> CategoryName:
        """Parse a name with the prefix; the level may be left out."""
        key, _, level = name.removeprefix(CATEGORY_PREFIX).partition(_LEVEL)
        return cls(key, int(level or 0))


def ancestors(category: CostCategory, level: int) -> dict[str, list[DatedValue]]:
    """Return for each value with a parent the value ``level`` steps above it, or the highest one, and the days on which
    it is there."""
    found: dict[str, list[DatedValue]] = {}
    for each in category.hierarchies:
        for value in each.parents:
            found.setdefault(value, []).append(DatedValue(each.at_level(value, level), each.during))
    return found


def with_descendants(category: CostCategory, values: frozenset[str]) -> dict[Period, frozenset[str]]:
    """Return some values and all values below them, for periods that cover all of time."""
    return {
        each.during: values | {value for value in each.parents if not values.isdisjoint(each.path(value))}
        for each in category.hierarchies
    }


class _NoNames:
    """Display names of nothing."""

    def names(self, entity_type: str) -> Mapping[str, str]:
        return {}


def _no_assignments(_dataset: Dataset, key: str) -> Assignments:
    raise LookupError(f"there is no cost category {key}")


@dataclass(frozen=True)
class CategoryLookup:
    """The categories of a tenant, and the tags and names that their rules see. ``assignments`` returns the assignments
    of a category, by its key, to the rows of a dataset; ``with_owners`` completes the measurements that its steps use.
    """

    index: CategoryIndex = field(default_factory=CategoryIndex)
    assignments: Callable[[Dataset, str], Assignments] = _no_assignments
    tags: Tags = field(default_factory=TagIndex)
    names: Callable[[], Names] = _NoNames
    with_owners: WithOwners = field(default=lambda measured: measured)

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


class InventoryNames:
    """The display names of one revision of a tenant's inventory, and what lies in which cluster; read when first
    needed."""

    def __init__(self, store: TenantStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._names: dict[str, Mapping[str, str]] = {}

    def names(self, entity_type: str) -> Mapping[str, str]:
        """Return the display names of identities or resources, or the clusters of resources, by id.

        Raises:
            StorageError: the control database cannot be read.
        """
        with self._lock:
            if entity_type not in self._names:
                with self._store.control.read() as connection:
                    self._names[entity_type] = (
                        read_enclosing(connection, KAFKA_CLUSTER)
                        if entity_type == CLUSTER
                        else every_name(connection, _KINDS[entity_type])
                    )
            return self._names[entity_type]


@dataclass(frozen=True)
class LookupCaches:
    """What the readers of a process keep. Safe for use by several threads."""

    tags: TagCache = field(default_factory=TagCache)
    clusters: ClusterCache = field(default_factory=ClusterCache)
    assignments: AssignmentCache = field(default_factory=AssignmentCache)
    documents: RevisionCache[CategoryIndex] = field(default_factory=RevisionCache)
    names: RevisionCache[InventoryNames] = field(default_factory=lambda: RevisionCache(most=16))
    #: The entities that are visible in the scopes of callers, by tenant and scope.
    entities: RevisionCache[VisibleEntities] = field(default_factory=lambda: RevisionCache(most=256))
    visible_sums: VisibleSumsCache = field(default_factory=VisibleSumsCache)
    #: A tenant's data when a month was closed, by tenant and instant.
    pasts: RevisionCache[Any] = field(default_factory=lambda: RevisionCache(most=64))
    #: The display names when a month was closed, by tenant and digest.
    pinned_names: RevisionCache[Names] = field(default_factory=lambda: RevisionCache(most=64))
    #: The books, by tenant and instant.
    books: RevisionCache[Books] = field(default_factory=lambda: RevisionCache(most=64))
    #: Both sides of corrections, and results, see :mod:`~chargeback.store.queries.posted`.
    posted: KeptTables = field(default_factory=KeptTables)

    def documents_of(
        self, tenant_name: str, connection: Connection, as_of: datetime | None = None, revision: int | None = None
    ) -> CategoryIndex:
        """Return the cost categories of a tenant, now or ``as_of`` an earlier instant; ``revision`` is that of the
        present ones, if it was read.

        Raises:
            StorageError: the control database cannot be read.
        """
        if as_of is not None:
            return read_categories(connection, as_of)
        if revision is None:
            revision = categories_revision(connection)
        return self.documents.get(tenant_name, revision, lambda: read_categories(connection))

    def categories(
        self,
        store: TenantStore,
        index: CategoryIndex,
        tags: TagIndex,
        pinned: Names | None = None,
        at: datetime | None = None,
    ) -> CategoryLookup:
        """Return the category lookup of a tenant's reader, with these ``tags``: of the present categories, or of those
        ``at`` an instant. ``pinned`` are the display names if they are not the present ones."""

        def _names() -> Names:
            if pinned is not None:
                return pinned
            with store.control.read() as connection:
                _, revision = read_entity_revisions(connection)
            return self.names.get(store.tenant_name, revision, lambda: InventoryNames(store))

        def _assignments(dataset: Dataset, key: str) -> Assignments:
            known = (dataset, index.category(key), tags, _names(), at)
            return self.assignments.get(store.tenant_name, key, *known)

        return CategoryLookup(index, _assignments, tags, _names, partial(with_owners, store))

    def candidate(self, store: TenantStore, index: CategoryIndex, tags: TagIndex) -> CategoryLookup:
        """Return the lookup of tags and categories that are not stored; their assignments are not kept."""
        return replace(self, assignments=AssignmentCache()).categories(store, index, tags)


def read_categories(connection: Connection, as_of: datetime | None = None) -> CategoryIndex:
    """Return the cost categories of a tenant, now or as of an instant, without unusable ones.

    Raises:
        StorageError: the control database cannot be read.
    """
    found: dict[str, StoredCategory] = {}
    for each in list_categories(connection, as_of):
        try:
            found[each.key] = StoredCategory(_parsed(each.key, each.document or "{}"), each.version)
        except CategoryError as error:
            # An earlier version of the service wrote it; everything else still works.
            log.error("version %d of the cost category %s cannot be used: %s", each.version, each.key, error.message)
    return CategoryIndex(found)


@lru_cache(maxsize=256)
def _parsed(key: str, document: str) -> CostCategory:
    return parse_category(key, parse_json(document), is_stored=True)
