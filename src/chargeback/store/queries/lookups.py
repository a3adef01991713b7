"""What queries join to the facts, kept between requests: tags, names, clusters, and cost categories."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import Connection

from chargeback.categories.compiled import CLUSTER
from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.categories.resolve import Names
from chargeback.errors import CategoryError
from chargeback.model.inventory import KAFKA_CLUSTER
from chargeback.model.money import parse_json
from chargeback.store.control.closings import Books
from chargeback.store.control.cost_categories import categories_revision, list_categories
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.control.lineage import read_enclosing
from chargeback.store.control.names import every_name
from chargeback.store.control.revisions import read_entity_revisions
from chargeback.store.queries.assignments import AssignmentCache, Assignments
from chargeback.store.queries.category_lookup import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.clusters import ClusterCache
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.measurements import with_owners
from chargeback.store.queries.revision_cache import KeptTables, RevisionCache
from chargeback.store.queries.tag_index import TagCache, TagIndex
from chargeback.store.queries.visible_sums import VisibleEntities, VisibleSumsCache
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)

_KINDS = {each.entity_type: each for each in (IDENTITIES, RESOURCES)}


class DisplayNames:
    """The display names of one revision of a tenant's inventory, and what lies in which cluster; read when they are
    first asked for."""

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
    names: RevisionCache[DisplayNames] = field(default_factory=lambda: RevisionCache(most=16))
    #: What the scopes of callers let them see, by tenant and scope.
    entities: RevisionCache[VisibleEntities] = field(default_factory=lambda: RevisionCache(most=256))
    visible_sums: VisibleSumsCache = field(default_factory=VisibleSumsCache)
    #: What a tenant's data were when a month was closed: by tenant and instant.
    pasts: RevisionCache[Any] = field(default_factory=lambda: RevisionCache(most=64))
    #: The display names of then: by tenant and digest.
    pinned_names: RevisionCache[Names] = field(default_factory=lambda: RevisionCache(most=64))
    #: The books, by tenant and the instant of which they are.
    books: RevisionCache[Books] = field(default_factory=lambda: RevisionCache(most=64))
    #: Both sides of corrections, and answers, see :mod:`~chargeback.store.queries.posted`.
    posted: KeptTables = field(default_factory=KeptTables)

    def documents_of(self, tenant_name: str, connection: Connection, as_of: datetime | None = None) -> CategoryIndex:
        """Return the cost categories of a tenant, now or ``as_of`` an earlier instant.

        Raises:
            StorageError: the control database cannot be read.
        """
        if as_of is not None:
            return read_categories(connection, as_of)
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
        """Return how a reader of a tenant, with these ``tags``, looks up its cost categories: the present ones, or
        those ``at`` an instant. ``pinned`` are the display names, where they are not the present ones."""

        def _names() -> Names:
            if pinned is not None:
                return pinned
            with store.control.read() as connection:
                _, revision = read_entity_revisions(connection)
            return self.names.get(store.tenant_name, revision, lambda: DisplayNames(store))

        def _assignments(dataset: Dataset, key: str) -> Assignments:
            known = (dataset, index.category(key), tags, _names(), at)
            return self.assignments.get(store.tenant_name, key, *known)

        return CategoryLookup(index, _assignments, tags, _names, partial(with_owners, store))

    def candidate(self, store: TenantStore, index: CategoryIndex, tags: TagIndex) -> CategoryLookup:
        """Return the same of tags and categories that are not stored: what is made of them is not kept."""
        return replace(self, assignments=AssignmentCache()).categories(store, index, tags)


def read_categories(connection: Connection, as_of: datetime | None = None) -> CategoryIndex:
    """Return the cost categories of a tenant, now or as of an instant; without those that cannot be used.

    Raises:
        StorageError: the control database cannot be read.
    """
    found: dict[str, StoredCategory] = {}
    for each in list_categories(connection, as_of):
        try:
            found[each.key] = StoredCategory(_parsed(each.key, each.document or "{}"), each.version)
        except CategoryError as error:
            # An earlier version of the service wrote it; all else can still be answered.
            log.error("version %d of the cost category %s cannot be used: %s", each.version, each.key, error.message)
    return CategoryIndex(found)


@lru_cache(maxsize=256)
def _parsed(key: str, document: str) -> CostCategory:
    return parse_category(key, parse_json(document), is_stored=True)
