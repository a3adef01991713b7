"""How often the control database's part of what is shown was changed: answers made of the same revisions are the same.

Every write of the inventory raises its revision; tags have one of their own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Connection, select, update

from chargeback.store.control.schema import days, tenant

_DAYS = select(
    days.c.tracking_date,
    days.c.billing_gathered,
    days.c.resources_gathered,
    days.c.chargeback_calculated,
    days.c.topic_overlay_gathered,
    days.c.topic_attribution_calculated,
    days.c.calculated_fingerprint,
    days.c.gathered_at,
    days.c.error,
).order_by(days.c.tracking_date)


@dataclass(frozen=True, slots=True)
class ControlRevisions:
    """The revisions of tags and inventory, a digest of how far each day is, and the last calculated day."""

    tags: int
    inventory: int
    days: str
    last_calculated: date | None


def read_revisions(connection: Connection) -> ControlRevisions:
    """Return the revisions as the control database has them now."""
    tags, inventory = read_entity_revisions(connection)
    states = connection.execute(_DAYS).all()
    calculated = [
        state.tracking_date
        for state in states
        if state.chargeback_calculated or state.calculated_fingerprint is not None
    ]
    digest = hashlib.blake2b("\n".join(map(str, states)).encode(), digest_size=16)
    return ControlRevisions(tags, inventory, digest.hexdigest(), max(calculated, default=None))


def read_entity_revisions(connection: Connection) -> tuple[int, int]:
    """Return the revisions of tags and of the inventory; 0 where the tenant has no row yet."""
    row = connection.execute(select(tenant.c.tags_revision, tenant.c.inventory_revision)).first()
    return (0, 0) if row is None else (row.tags_revision, row.inventory_revision)


def raise_inventory_revision(connection: Connection) -> None:
    """Let readers notice that the inventory has changed."""
    connection.execute(update(tenant).values(inventory_revision=tenant.c.inventory_revision + 1))
