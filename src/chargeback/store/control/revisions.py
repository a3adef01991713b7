"""How often the data that the control database contributes to responses was changed. Responses made from the same
revisions are equal.

Every write of the inventory raises its revision; tags, cost categories, applied policies and the catalogue of files
have revisions of their own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date
from typing import Final

from sqlalchemy import Connection, func, literal_column, or_, select, update

from chargeback.store.control.days import DatasetState, DayDataset
from chargeback.store.control.schema import dataset_days, tenant

# The database makes one text of all days, which is only compared: a thread would give up the interpreter's lock to
# those of other requests for each row, and wait for it again.
_DAYS: Final = """
    SELECT CAST({list}(states) AS TEXT) FROM (
        SELECT {array}(
            days.tracking_date, billing_gathered, resources_gathered,
            coalesce(charged.state IN ('current', 'review'), false), coalesce(topics.is_measured, false),
            coalesce(topics.state IN ('current', 'review'), false), charged.fingerprint, gathered_at, error) AS states
        FROM days
        LEFT JOIN dataset_days AS charged
             ON charged.dataset = 'chargebacks' AND charged.tracking_date = days.tracking_date
        LEFT JOIN dataset_days AS topics ON topics.dataset = 'topics' AND topics.tracking_date = days.tracking_date
        ORDER BY days.tracking_date) AS by_day
"""
_DAYS_IN: Final = {
    "sqlite": _DAYS.format(list="json_group_array", array="json_array"),
    "postgresql": _DAYS.format(list="json_agg", array="json_build_array"),
}
LAST_CALCULATED = select(func.max(dataset_days.c.tracking_date)).where(
    dataset_days.c.dataset == DayDataset.CHARGEBACKS,
    or_(dataset_days.c.state == DatasetState.CURRENT, dataset_days.c.fingerprint.is_not(None)),
)
_OF_TENANT: Final = (
    tenant.c.tags_revision,
    tenant.c.inventory_revision,
    tenant.c.categories_revision,
    tenant.c.policies_revision,
)
_REVISIONS_IN: Final = {
    name: select(literal_column(f"({states})"), LAST_CALCULATED.scalar_subquery(), *_OF_TENANT)
    for name, states in _DAYS_IN.items()
}


@dataclass(frozen=True, slots=True)
class ControlRevisions:
    """The revisions of tags and inventory, a digest of the states of days, the last calculated day, and the revisions
    of cost categories and applied policies."""

    tags: int
    inventory: int
    days: str
    last_calculated: date | None
    categories: int = 0
    policies: int = 0


def read_revisions(connection: Connection) -> ControlRevisions:
    """Return the present revisions."""
    found = connection.execute(_REVISIONS_IN[connection.dialect.name]).one()
    states, last, tags, inventory, categories, policies = found
    digest = hashlib.blake2b((states or "").encode(), digest_size=16)
    return ControlRevisions(tags, inventory, digest.hexdigest(), last, categories, policies)


def read_entity_revisions(connection: Connection) -> tuple[int, int]:
    """Return the revisions of tags and of the inventory; 0 where the tenant has no row yet."""
    row = connection.execute(select(tenant.c.tags_revision, tenant.c.inventory_revision)).first()
    return (0, 0) if row is None else (row.tags_revision, row.inventory_revision)


def raise_inventory_revision(connection: Connection) -> None:
    """Record that the inventory has changed."""
    connection.execute(update(tenant).values(inventory_revision=tenant.c.inventory_revision + 1))
