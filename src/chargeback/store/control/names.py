"""The names, types and deletion times of some entities."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from sqlalchemy import Connection, select

from chargeback.store.control.inventory_lists import EntityKind
from chargeback.store.control.schema import resources

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Named:
    """An entity of the inventory: its display name, its type, and the time of its deletion."""

    name: str | None
    type: str
    deleted_at: datetime | None


def names_of(connection: Connection, kind: EntityKind, ids: Collection[str]) -> Mapping[str, Named]:
    """Return the known entities of one kind among these ids, by id and in its order: responses show it."""
    table, wanted = kind.table, sorted(ids)
    found: dict[str, Named] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        query = select(kind.id, table.c.display_name, kind.type, table.c.deleted_at).where(kind.id.in_(some))
        # Sorted here, because a database sorts by the rules of its language.
        rows = sorted(connection.execute(query), key=itemgetter(0))
        found |= {row[0]: Named(row[1], row[2], row[3]) for row in rows}
    return found


def ids_named(connection: Connection, kind: EntityKind, name: str) -> list[str]:
    """Return the ids of the entities of one kind with a display name, at most three, in ascending order."""
    query = select(kind.id).where(kind.table.c.display_name == name)
    return sorted(connection.execute(query).scalars())[:3]


def owners_of(connection: Connection, ids: Collection[str]) -> dict[str, str]:
    """Return the owners of those of some resources that have one, by the id of the resource."""
    wanted = sorted(ids)
    found: dict[str, str] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        its, owner = resources.c.resource_id, resources.c.owner_id
        query = select(its, owner).where(its.in_(wanted[start : start + _AT_ONCE]), owner.is_not(None))
        found |= {row[0]: row[1] for row in connection.execute(query)}
    return found


def every_name(connection: Connection, kind: EntityKind) -> dict[str, str]:
    """Return the display names of all entities of one kind that have one, by id."""
    columns = select(kind.id, kind.table.c.display_name).where(kind.table.c.display_name.is_not(None))
    return {row[0]: row[1] for row in connection.execute(columns)}
