"""Which resource of the inventory lies in which."""

from __future__ import annotations

from sqlalchemy import Connection, select

from chargeback.model.inventory import enclosing
from chargeback.store.control.schema import resources


def read_enclosing(connection: Connection, resource_type: str) -> dict[str, str]:
    """Return for each resource that lies in one of a type, at whatever depth, that one's id (its own for itself);
    deleted ones are included."""
    columns = select(resources.c.resource_id, resources.c.resource_type, resources.c.parent_id)
    return enclosing({row[0]: (row[1], row[2]) for row in connection.execute(columns)}, resource_type)
