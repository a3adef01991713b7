"""The names of entities that breakdowns show with their ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from sqlalchemy import Connection

from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, EntityKind, Named, names_of
from chargeback.store.queries.clusters import CLUSTER_ID
from chargeback.store.queries.costs import Breakdown
from chargeback.store.queries.lookups import CATEGORY_PREFIX, CategoryName
from chargeback.store.queries.reader import TenantReader

#: The columns whose values are ids of the inventory.
NAMED_COLUMNS: Final[Mapping[str, EntityKind]] = {
    "identity_id": IDENTITIES,
    "resource_id": RESOURCES,
    "environment_id": RESOURCES,
    CLUSTER_ID: RESOURCES,
}

NamesByKind = Mapping[EntityKind, Mapping[str, Named]]
#: Returns the display names of some ids of a column.
NameReader = Callable[[str, Collection[str]], Mapping[str, str]]


def names_in(connection: Connection, breakdowns: Iterable[Breakdown], clusters: Iterable[str] = ()) -> NamesByKind:
    """Return the names of the ids in breakdowns, and of some clusters."""
    wanted: dict[EntityKind, set[str]] = {IDENTITIES: set(), RESOURCES: set(clusters)}
    for breakdown in breakdowns:
        kind = NAMED_COLUMNS.get(breakdown.by)
        if kind is not None:
            wanted[kind] |= {each.value for each in (*breakdown.items, *breakdown.movers) if each.value is not None}
    return {kind: names_of(connection, kind, ids) for kind, ids in wanted.items()}


def names_of_values(reader: TenantReader, by: str) -> Mapping[str, str]:
    """Return the names that a cost category has for its values, if costs are broken down by one."""
    if not by.startswith(CATEGORY_PREFIX):
        return {}
    category = reader.categories.index.category(CategoryName.of(by).key)
    return {each.key: each.name for each in category.values if each.name is not None}


def names_of_ids(connection: Connection, column: str, ids: Collection[str | None]) -> Mapping[str, str]:
    """Return the display names of some ids of a column. Ids without a name are left out."""
    return display_names(connection, [column], [{column: each} for each in ids]).get(column, {})


def display_names(
    connection: Connection, columns: Iterable[str], groups: Collection[Mapping[str, str | None]]
) -> dict[str, dict[str, str]]:
    """Return the display names of the ids in groups, by column and id. Ids without a name are left out."""
    found = {}
    for column in columns:
        if column in NAMED_COLUMNS:
            ids = {each for group in groups if (each := group[column]) is not None}
            known = names_of(connection, NAMED_COLUMNS[column], ids)
            found[column] = {entity_id: entity.name for entity_id, entity in known.items() if entity.name is not None}
    return found
