"""The inventory of a tenant: merged from complete listings. Deleted entities are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, bindparam, delete, insert, select, update

from chargeback.model.inventory import (
    GRANT,
    SYSTEM_IDENTITY,
    UNALLOCATED,
    Grant,
    Identity,
    Inventory,
    ListedInventory,
    Resource,
)
from chargeback.store.control.revisions import raise_inventory_revision
from chargeback.store.control.schema import grants, identities, listings, resources

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _RecordKind:
    """How one kind of record is stored: its table, its key columns, and the column of its type."""

    table: Table
    keys: tuple[str, ...]
    type_column: str | None

    def key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.keys)

    def type_of(self, row: Mapping[str, Any]) -> str:
        return str(row[self.type_column]) if self.type_column else GRANT


_RESOURCES = _RecordKind(resources, ("resource_id",), "resource_type")
_IDENTITIES = _RecordKind(identities, ("identity_id",), "identity_type")
_GRANTS = _RecordKind(grants, ("grant_id", "resource_id"), None)


def merge_listing(
    connection: Connection, listed: ListedInventory, now: datetime, *, empty_listings_to_delete: int
) -> None:
    """Update the inventory from a listing.

    Only listed types change. An entity that is missing from a complete listing is marked as deleted, at the provider's
    time if known, else now. An empty listing deletes only if it is the ``empty_listings_to_delete``-th in a row (−1:
    never).
    """
    raise_inventory_revision(connection)
    inventory = listed.inventory
    batches: Sequence[tuple[_RecordKind, list[_Row]]] = (
        (_RESOURCES, [_resource_row(resource) for resource in inventory.resources]),
        (_IDENTITIES, [_identity_row(identity) for identity in inventory.identities]),
        (_GRANTS, [_grant_row(grant) for grant in inventory.grants]),
    )
    filled = {kind.type_of(row) for kind, rows in batches for row in rows}
    changing = listed.complete | listed.partial
    deletable = {
        name for name in listed.complete if name in filled or _is_emptied(connection, name, empty_listings_to_delete)
    }
    _reset_empty_counts(connection, filled & listed.complete)
    for kind, rows in batches:
        changes = [row for row in rows if kind.type_of(row) in changing]
        _merge(connection, kind, changes, deletable, now)
        _mark_seen(connection, kind, changes, listed.complete, now)


def _merge(connection: Connection, kind: _RecordKind, rows: list[_Row], deletable: set[str], now: datetime) -> None:
    known = {kind.key(row): row for row in (found._asdict() for found in connection.execute(select(kind.table)))}
    new: dict[tuple[Any, ...], _Row] = {}
    changed: dict[tuple[Any, ...], _Row] = {}
    for row in rows:
        key = kind.key(row)
        if key not in known:
            new[key] = {**row, "last_seen_at": now}
            continue
        merged = {**row, "created_at": row["created_at"] or known[key]["created_at"]}
        if any(known[key][name] != value for name, value in merged.items()):
            changed[key] = merged
    listed = {kind.key(row) for row in rows}
    for key, row in known.items():
        is_ours = key == (UNALLOCATED,)  # no provider lists it, under any type
        if key not in listed and kind.type_of(row) in deletable and row["deleted_at"] is None and not is_ours:
            changed[key] = {name: row[name] for name in row if name != "last_seen_at"} | {"deleted_at": now}
    _insert(connection, kind, new.values())
    _update(connection, kind, changed.values())


def _insert(connection: Connection, kind: _RecordKind, rows: Iterable[_Row]) -> None:
    if batch := list(rows):
        connection.execute(insert(kind.table), batch)


def _update(connection: Connection, kind: _RecordKind, rows: Iterable[_Row]) -> None:
    batch = [{**row, **{f"key_{name}": row[name] for name in kind.keys}} for row in rows]
    if not batch:
        return
    changeable = [name for name in batch[0] if not name.startswith("key_") and name not in kind.keys]
    statement = (
        update(kind.table)
        .where(and_(*(kind.table.c[name] == bindparam(f"key_{name}") for name in kind.keys)))
        .values({name: bindparam(name) for name in changeable})
    )
    connection.execute(statement, [{k: v for k, v in row.items() if k not in kind.keys} for row in batch])


def _mark_seen(
    connection: Connection, kind: _RecordKind, rows: Sequence[_Row], complete: frozenset[str], now: datetime
) -> None:
    """Set the last sighting to now: for completely listed types of all existing entities, for others of each listed
    id."""
    types = {kind.type_of(row) for row in rows}
    living = update(kind.table).where(kind.table.c.deleted_at.is_(None)).values(last_seen_at=now)
    if kind.type_column is None:
        if types & complete:
            connection.execute(living)
        return
    connection.execute(living.where(kind.table.c[kind.type_column].in_(types & complete)))
    key = kind.table.c[kind.keys[0]]
    if seen := [{"seen": row[kind.keys[0]]} for row in rows if kind.type_of(row) not in complete]:
        connection.execute(update(kind.table).where(key == bindparam("seen")).values(last_seen_at=now), seen)


def _is_emptied(connection: Connection, name: str, empty_listings_to_delete: int) -> bool:
    """Count one more empty listing of a type; return whether there were enough to accept it."""
    count: int = connection.execute(select(listings.c.empty_in_a_row).where(listings.c.type == name)).scalar() or 0
    connection.execute(delete(listings).where(listings.c.type == name))
    connection.execute(insert(listings).values(type=name, empty_in_a_row=count + 1))
    return 0 <= empty_listings_to_delete <= count + 1


def _reset_empty_counts(connection: Connection, names: set[str]) -> None:
    connection.execute(delete(listings).where(listings.c.type.in_(names)))


def ensure_known(
    connection: Connection, now: datetime, *, billed: Iterable[Resource] = (), charged: Iterable[Identity] = ()
) -> None:
    """Add a row to the inventory for every billed resource and every charged identity, including ``UNALLOCATED``."""
    raise_inventory_revision(connection)
    everybody = [Identity(UNALLOCATED, SYSTEM_IDENTITY, "Unallocated"), *charged]
    for kind, rows in (
        (_RESOURCES, [_resource_row(resource) for resource in billed]),
        (_IDENTITIES, [_identity_row(identity) for identity in everybody]),
    ):
        (key,) = kind.keys
        known = set(connection.execute(select(kind.table.c[key])).scalars())
        missing = {row[key]: {**row, "last_seen_at": now} for row in rows if row[key] not in known}
        _insert(connection, kind, missing.values())


def read_inventory(connection: Connection) -> Inventory:
    """Return the whole inventory, including deleted entities."""
    return Inventory(
        resources=[Resource(**_without(row)) for row in connection.execute(select(resources))],
        identities=[Identity(**_without(row)) for row in connection.execute(select(identities))],
        grants=[Grant(**_without(row)) for row in connection.execute(select(grants))],
    )


def _resource_row(resource: Resource) -> _Row:
    return {
        "resource_id": resource.resource_id,
        "resource_type": resource.resource_type,
        "display_name": resource.display_name,
        "parent_id": resource.parent_id,
        "owner_id": resource.owner_id,
        "active_as": resource.active_as,
        "created_at": resource.created_at,
        "deleted_at": resource.deleted_at,
        "metadata": dict(resource.metadata),
    }


def _identity_row(identity: Identity) -> _Row:
    return {
        "identity_id": identity.identity_id,
        "identity_type": identity.identity_type,
        "display_name": identity.display_name,
        "created_at": identity.created_at,
        "deleted_at": identity.deleted_at,
        "metadata": dict(identity.metadata),
    }


def _grant_row(grant: Grant) -> _Row:
    return {
        "grant_id": grant.grant_id,
        "resource_id": grant.resource_id,
        "identity_id": grant.identity_id,
        "created_at": grant.created_at,
        "deleted_at": grant.deleted_at,
    }


def _without(row: Row[Any]) -> _Row:
    return {name: value for name, value in row._asdict().items() if name != "last_seen_at"}
