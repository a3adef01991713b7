"""The inventory as the API shows it: lists, counts, names, owners, and which resource lies in which.

SQLite and PostgreSQL give the same results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Table, and_, case, collate, func, or_, select

from chargeback.model.inventory import Metadata, enclosing
from chargeback.store.control.given import among
from chargeback.store.control.schema import identities, resources, tags

ACTIVE: Final = "active"
DELETED: Final = "deleted"
_IDS_AT_ONCE: Final = 500
_ROWS_AT_ONCE: Final = 1000


@dataclass(frozen=True)
class EntityKind:
    """Resources or identities: the table, and the names of its id and type columns."""

    entity_type: str
    table: Table

    @property
    def id(self) -> ColumnElement[str]:
        """The id column."""
        return self.table.c[f"{self.entity_type}_id"]

    @property
    def type(self) -> ColumnElement[str]:
        """The type column."""
        return self.table.c[f"{self.entity_type}_type"]

    @property
    def status(self) -> ColumnElement[str]:
        """``active``, or ``deleted`` once a deletion is known."""
        return case((self.table.c.deleted_at.is_(None), ACTIVE), else_=DELETED)


RESOURCES: Final = EntityKind("resource", resources)
IDENTITIES: Final = EntityKind("identity", identities)


@dataclass(frozen=True)
class InventoryFilter:
    """The filters and the order of an inventory list.

    ``period`` is (start, end): entities that existed at some moment of it, or at that moment if both are equal. With a
    period, ``search``, the order and the tags are ignored. With ``ids``, only these
    entities are listed.
    """

    type: str | None = None
    status: str | None = None
    period: tuple[datetime, datetime] | None = None
    search: str | None = None
    sort_by: str | None = None
    descending: bool = False
    tag_key: str | None = None
    tag_value: str | None = None
    ids: Collection[str] | None = None


def listed(
    connection: Connection, kind: EntityKind, inventory_filter: InventoryFilter, *, offset: int, limit: int
) -> tuple[list[RowMapping], int]:
    """Return one page of a list as (rows, number of rows in all). Rows have the table's columns and ``status``."""
    where = _where(connection, kind, inventory_filter)
    total = connection.execute(select(func.count()).select_from(kind.table).where(where)).scalar_one()
    if offset >= total:
        return [], total
    page = _ordered(connection, kind, inventory_filter).offset(offset).limit(limit)
    return list(connection.execute(page).mappings()), total


def every_listed(connection: Connection, kind: EntityKind, inventory_filter: InventoryFilter) -> Iterator[RowMapping]:
    """Yield the whole list, in its order, while it is read."""
    whole = _ordered(connection, kind, inventory_filter).execution_options(yield_per=_ROWS_AT_ONCE)
    yield from connection.execute(whole).mappings()


def matching(connection: Connection, kind: EntityKind, text: str) -> Iterator[RowMapping]:
    """Yield the entities with ``text`` in their id or display name, ignoring case, in no particular order, while
    reading them."""
    found = select(kind.table).where(_search(connection, kind, text)).execution_options(yield_per=_ROWS_AT_ONCE)
    yield from connection.execute(found).mappings()


def counts(connection: Connection, kind: EntityKind, ids: Collection[str] | None = None) -> dict[str, dict[str, int]]:
    """Return the numbers of entities per type, of all or of those with some ``ids``: type → ``total``, ``active``,
    ``deleted``."""
    deleted = func.count(kind.table.c.deleted_at)
    where = _where(connection, kind, InventoryFilter(ids=ids))
    rows = connection.execute(select(kind.type, func.count(), deleted).where(where).group_by(kind.type))
    return {
        name: {"total": total, "active": total - gone, "deleted": gone}
        for name, total, gone in sorted(rows, key=lambda row: row[0])
    }


def _ordered(connection: Connection, kind: EntityKind, inventory_filter: InventoryFilter) -> Select[Any]:
    rows = select(kind.table, kind.status.label("status")).where(_where(connection, kind, inventory_filter))
    return rows.order_by(*_order(connection, kind, inventory_filter))


def _where(connection: Connection, kind: EntityKind, inventory_filter: InventoryFilter) -> ColumnElement[bool]:
    clauses: list[ColumnElement[bool]] = []
    if inventory_filter.ids is not None:
        clauses.append(among(connection, kind.id, inventory_filter.ids))
    if inventory_filter.type is not None:
        clauses.append(kind.type == inventory_filter.type)
    if inventory_filter.status is not None:
        clauses.append(kind.status == inventory_filter.status)
    if inventory_filter.period is not None:
        clauses.append(_existed(kind.table, *inventory_filter.period))
    else:
        if inventory_filter.search:
            clauses.append(_search(connection, kind, inventory_filter.search))
        if inventory_filter.tag_key is not None:
            clauses.append(_tagged(kind, inventory_filter.tag_key, inventory_filter.tag_value))
    return and_(True, *clauses)


def _search(connection: Connection, kind: EntityKind, text: str) -> ColumnElement[bool]:
    return or_(*(contains(connection, column, text) for column in (kind.id, kind.table.c.display_name)))


def _existed(table: Table, start: datetime, end: datetime) -> ColumnElement[bool]:
    """Return the condition that an entity existed at some instant of ``[start, end)``, or at ``start`` if both are
    equal."""
    created, deleted = table.c.created_at, table.c.deleted_at
    before_end = created <= start if start == end else created < end
    return and_(or_(created.is_(None), before_end), or_(deleted.is_(None), deleted > start))


def _tagged(kind: EntityKind, key: str, value: str | None) -> ColumnElement[bool]:
    tag = select(tags.c.tag_id).where(
        tags.c.entity_type == kind.entity_type, tags.c.entity_id == kind.id, tags.c.tag_key == key
    )
    return (tag if value is None else tag.where(tags.c.tag_value == value)).exists()


def _order(connection: Connection, kind: EntityKind, inventory_filter: InventoryFilter) -> list[ColumnElement[Any]]:
    """Return the order: by the given column, then by id. Entities without a value come last, in either direction."""
    by_id = bytewise(connection, kind.id)
    if inventory_filter.period is not None:
        return [by_id]
    sortable = {
        "display_name": kind.table.c.display_name,
        f"{kind.entity_type}_type": kind.type,
        "status": kind.status,
        f"{kind.entity_type}_id": kind.id,
    }
    if kind is IDENTITIES:
        del sortable["status"]
    column = bytewise(connection, sortable.get(inventory_filter.sort_by or "", kind.id))
    return [(column.desc() if inventory_filter.descending else column.asc()).nulls_last(), by_id]


def bytewise(connection: Connection, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return ``column`` with a collation that sorts by bytes, independent of the collation of the database."""
    return column if connection.dialect.name == "sqlite" else collate(column, "C")


def contains(connection: Connection, column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Return the condition that ``column`` contains ``text``, ignoring case in all scripts."""
    if connection.dialect.name != "sqlite":
        return func.strpos(func.lower(column), func.lower(text)) > 0
    # SQLite itself ignores case only for ASCII.
    driver: Any = connection.connection.dbapi_connection
    driver.create_function("lower_case", 1, lambda value: value and value.lower(), deterministic=True)
    return func.instr(func.lower_case(column), text.lower()) > 0


@dataclass(frozen=True, slots=True)
class Named:
    """An entity of the inventory: its display name, its type, and the time of its deletion."""

    name: str | None
    type: str
    deleted_at: datetime | None


def names_of(connection: Connection, kind: EntityKind, ids: Collection[str]) -> Mapping[str, Named]:
    """Return the known entities of one kind among these ids, by id and ordered by it: responses show this order."""
    table, wanted = kind.table, sorted(ids)
    found: dict[str, Named] = {}
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        some = wanted[start : start + _IDS_AT_ONCE]
        query = select(kind.id, table.c.display_name, kind.type, table.c.deleted_at).where(kind.id.in_(some))
        # Sorted here, because a database sorts by its collation.
        rows = sorted(connection.execute(query), key=itemgetter(0))
        found |= {row[0]: Named(row[1], row[2], row[3]) for row in rows}
    return found


def ids_named(connection: Connection, kind: EntityKind, name: str) -> list[str]:
    """Return the ids of the entities of one kind with a display name, at most three, in ascending order."""
    query = select(kind.id).where(kind.table.c.display_name == name)
    return sorted(connection.execute(query).scalars())[:3]


def every_name(connection: Connection, kind: EntityKind) -> dict[str, str]:
    """Return the display names of all entities of one kind that have one, by id."""
    columns = select(kind.id, kind.table.c.display_name).where(kind.table.c.display_name.is_not(None))
    return {row[0]: row[1] for row in connection.execute(columns)}


def owners_of(connection: Connection, ids: Collection[str]) -> dict[str, str]:
    """Return the owners of some resources, by resource id; without the resources that have none."""
    wanted = sorted(ids)
    found: dict[str, str] = {}
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        its, owner = resources.c.resource_id, resources.c.owner_id
        query = select(its, owner).where(its.in_(wanted[start : start + _IDS_AT_ONCE]), owner.is_not(None))
        found |= {row[0]: row[1] for row in connection.execute(query)}
    return found


def read_enclosing(connection: Connection, resource_type: str) -> dict[str, str]:
    """Return the id of the enclosing resource of a type, by the id of each resource inside it, at any depth. A resource
    of the type encloses itself; deleted resources are included."""
    columns = select(resources.c.resource_id, resources.c.resource_type, resources.c.parent_id)
    return enclosing({row[0]: (row[1], row[2]) for row in connection.execute(columns)}, resource_type)


@dataclass(frozen=True, slots=True)
class Lineage:
    """A resource as part of the organisation: its type, the resource that contains it, its display name, and its other
    data."""

    type: str
    parent_id: str | None
    name: str | None
    metadata: Metadata = field(default_factory=dict)


def read_lineages(connection: Connection, ids: Collection[str]) -> dict[str, Lineage]:
    """Return the known resources among some ids, and all resources that contain them, at any height."""
    columns = select(
        resources.c.resource_id,
        resources.c.resource_type,
        resources.c.parent_id,
        resources.c.display_name,
        resources.c.metadata,
    )
    found: dict[str, Lineage] = {}
    wanted = set(ids)
    while wanted:
        ordered = sorted(wanted)
        rows = [
            row
            for start in range(0, len(ordered), _IDS_AT_ONCE)
            for row in connection.execute(
                columns.where(resources.c.resource_id.in_(ordered[start : start + _IDS_AT_ONCE]))
            )
        ]
        found |= {row[0]: Lineage(row[1], row[2], row[3], row[4]) for row in rows}
        wanted = {row[2] for row in rows if row[2] is not None} - found.keys()
    return found
