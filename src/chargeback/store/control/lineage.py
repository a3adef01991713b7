"""Which resource of the inventory lies in which."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, select

from chargeback.model.inventory import Metadata, enclosing
from chargeback.store.control.schema import resources

_AT_ONCE: Final = 500


def read_enclosing(connection: Connection, resource_type: str) -> dict[str, str]:
    """Return for each resource that lies in one of a type, at whatever depth, that one's id (its own for itself);
    deleted ones are included."""
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
    """Return the known resources among some ids, and all that contain them, at whatever height."""
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
            for start in range(0, len(ordered), _AT_ONCE)
            for row in connection.execute(columns.where(resources.c.resource_id.in_(ordered[start : start + _AT_ONCE])))
        ]
        found |= {row[0]: Lineage(row[1], row[2], row[3], row[4]) for row in rows}
        wanted = {row[2] for row in rows if row[2] is not None} - found.keys()
    return found
