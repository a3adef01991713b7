"""Random scopes over random bills, and the data visible in them, determined slowly and without the code under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from hypothesis import strategies as st

from chargeback.access.scope import RowScope
from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.model.inventory import UNTAGGED
from chargeback.model.money import from_units
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.lookups import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.visible_sums import VisibleSums
from tests.categories.naive import Naive, largest_remainder
from tests.support.categories import (
    ENVIRONMENTS,
    IDENTITIES,
    PRODUCT_CATEGORIES,
    PRODUCT_TYPES,
    RESOURCES,
    TAG_KEYS,
    VALUES,
    BillRow,
    SomeNames,
    SomeTags,
    bills,
    documents,
    names,
    tags,
)
from tests.support.facts import Share, line, write_lines, write_shares
from tests.support.topics import TopicShare, write_topic_shares

#: The cluster of each resource, as in the inventory.
CLUSTERS: Final = {"lkc-1": "lkc-1", "lsrc-1": "lkc-1"}
#: The cost categories; the last one is used only in scopes.
KEYS: Final = ("area", "team")
UNKNOWN: Final = "gone"
#: Every third row has this detail of costs that were not allocated as intended.
ISSUE: Final = "NO_OWNER_LOCATED"

_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "identity_id": IDENTITIES,
    "resource_id": RESOURCES,
    "environment_id": ("", *ENVIRONMENTS),
    "cluster_id": ("", "lkc-1", "lkc-2"),
    "product_type": PRODUCT_TYPES,
    "product_category": PRODUCT_CATEGORIES,
    **{f"tag:{key}": ("payments", "orders", "search", "web-shop", UNTAGGED) for key in TAG_KEYS},
    **{f"category:{key}": (*VALUES, "UNASSIGNED", "nobody", "payments") for key in (*KEYS, UNKNOWN)},
}


@st.composite
def _conditions(draw: st.DrawFn) -> dict[str, frozenset[str]]:
    chosen = draw(st.lists(st.sampled_from(sorted(_CHOICES)), min_size=1, max_size=3, unique=True))
    return {name: draw(st.frozensets(st.sampled_from(_CHOICES[name]), max_size=4)) for name in chosen}


#: Scopes of one to three conditions, some without matching rows.
SCOPES: Final = _conditions().map(RowScope.of)


@dataclass
class ScopedWorld:
    """A random bill with its charges and topics, tags, names and cost categories."""

    charges: list[BillRow]
    lines: list[BillRow]
    topics: list[BillRow]
    tags: SomeTags
    names: SomeNames
    documents: Mapping[str, dict[str, Any]]

    def __post_init__(self) -> None:
        self.charges = [
            replace(row, identity_id=row.identity_id or "sa-9", resource_id=row.resource_id or "lkc-9", topic_name=None)
            for row in self.charges
        ]
        self.lines = [
            replace(row, identity_id=None, resource_id=row.resource_id or "lkc-9", topic_name=None)
            for row in self.lines
        ]
        self.topics = [
            replace(
                row,
                identity_id=None,
                resource_id=row.resource_id or "lkc-9",
                topic_name=row.topic_name or "all",
                product_category="KAFKA",
            )
            for row in self.topics
        ]

    @cached_property
    def categories(self) -> dict[str, CostCategory]:
        """Return the cost categories by key."""
        return {key: parse_category(key, document) for key, document in self.documents.items()}

    @cached_property
    def index(self) -> TagIndex:
        """Return the tags as queries see them."""
        kept: dict[str, dict[str, dict[str, Any]]] = {"identity": {}, "resource": {}}
        for (kind, entity, key), values in self.tags.values.items():
            if values:
                kept[kind].setdefault(entity, {})[key] = tuple(values)
        return TagIndex(kept["identity"], kept["resource"])

    def write(self, facts: FactTables) -> None:
        """Write charges, billing lines and topic rows."""
        shares = [
            Share(
                row.day,
                row.identity_id or "",
                str(from_units(row.units)),
                resource=row.resource_id or "",
                product=row.product_type or "",
                detail="USAGE_RATIO_ALLOCATION" if number % 3 else ISSUE,
                environment=row.environment_id,
                line=f"line-{number // 2}",
                portion=number,
                product_category=row.product_category or "",
            )
            for number, row in enumerate(self.charges)
        ]
        write_shares(facts, shares)
        lines = [
            line(
                row.day,
                str(from_units(row.units)),
                resource=row.resource_id or "",
                product=row.product_type or "",
                environment_id=row.environment_id,
                description=str(number),
            )
            for number, row in enumerate(self.lines)
        ]
        write_lines(
            facts,
            (
                replace(each, product_category=of.product_category or "")
                for each, of in zip(lines, self.lines, strict=True)
            ),
        )
        topics = [
            TopicShare(
                row.day,
                row.topic_name or "",
                str(from_units(row.units)),
                cluster=row.resource_id or "",
                product=row.product_type or "",
                environment=row.environment_id,
                line=f"line-{number}",
            )
            for number, row in enumerate(self.topics)
        ]
        write_topic_shares(facts, topics)

    def reader(
        self, cursor: Cursor, facts: FactTables, scope: RowScope | None, sums: VisibleSums | None = None
    ) -> TenantReader:
        """Open a reader, which caches ``sums`` within the scope; categories are resolved once for each world."""
        known = TenantReader(cursor, facts, self.index, clusters=lambda: CLUSTERS, categories=self._lookup, scope=scope)
        return known if scope is None or sums is None else known.keeping(lambda make: make(), sums)

    @cached_property
    def _lookup(self) -> CategoryLookup:
        kept: dict[tuple[str, str], Assignments] = {}

        def _assignments(dataset: Dataset, key: str) -> Assignments:
            made = Assignments(self.categories[key], dataset, self.tags, self.names)
            return kept.setdefault((dataset.table, key), made)

        stored = {key: StoredCategory(each, 1) for key, each in self.categories.items()}
        return CategoryLookup(CategoryIndex(stored), _assignments)

    def visible(self, rows: Sequence[BillRow], scope: RowScope) -> dict[int, int]:
        """Return the visible amount of each visible row, in units, by the index of the row."""
        found = {place: self._pieces(row, scope) for place, row in enumerate(rows)}
        return {place: sum(pieces) for place, pieces in found.items() if pieces}

    def _pieces(self, row: BillRow, scope: RowScope) -> list[int]:
        pieces = [row.units]
        for name, values in scope.conditions:
            kind, _, key = name.partition(":")
            if kind == "category":
                pieces = [units for piece in pieces for units in self._parts(row, piece, key, values)]
            elif not self._matches(row, kind, key, values):
                return []
        return pieces

    def _parts(self, row: BillRow, piece: int, key: str, values: frozenset[str]) -> list[int]:
        if key == UNKNOWN:
            return []
        naive = Naive(self.documents[key], self.tags, self.names)
        parts = largest_remainder(piece, naive.decided(row.subject, row.day)[1])
        return [units for value, units in parts.items() if not values.isdisjoint(naive.path(value, row.day))]

    def _matches(self, row: BillRow, kind: str, key: str, values: frozenset[str]) -> bool:
        if kind == "tag":
            return self.tag_of(row, key) in values
        if kind == "identity_id" and row.identity_id is None:
            return False
        if kind == "cluster_id":
            of_row = row.resource_id if row.topic_name else CLUSTERS.get(row.resource_id or "")
        else:
            of_row = row.subject[kind]
        return (of_row or "") in values

    def tag_of(self, row: BillRow, key: str) -> str:
        """Return the tag of a row: that of the topic for a row of a topic, otherwise that of the identity, or else of
        the resource."""
        resource = f"{row.resource_id}:topic:{row.topic_name}" if row.topic_name else row.resource_id
        for place in (("identity", row.identity_id, key), ("resource", resource, key)):
            for held in self.tags.values.get(place, ()):  # type: ignore[arg-type] # some rows have no identity
                if row.day in held.during:
                    return held.value
        return UNTAGGED


def _without_share(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "share"}


def worlds(*, handing_on: bool) -> st.SearchStrategy[ScopedWorld]:
    """Return a strategy for random worlds, optionally with categories that reallocate the cost of values."""
    one = documents() if handing_on else documents().map(_without_share)
    by_key = st.fixed_dictionaries(dict.fromkeys(KEYS, one))
    return st.builds(ScopedWorld, bills(), bills(6), bills(6), tags(), names(), by_key)
