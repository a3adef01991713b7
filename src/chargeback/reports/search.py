"""Find anything of a tenant by a part of its name: identities, resources, topics, and values of tags."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Final, Literal

from sqlalchemy import Connection, RowMapping

from chargeback.model.topics import topic_resource_id
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, matching
from chargeback.store.queries.entity_costs import EntityCosts
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.visible_sums import VisibleEntities

Kind = Literal["identity", "resource", "topic", "tag"]

_ZERO: Final = Decimal(0)


@dataclass(frozen=True)
class Found:
    """Something whose id or name contains what was searched for, and what it cost lately, if anything.

    The id of a topic is its name, and its parent the cluster; the id of a tag is its value, and its type the key.
    """

    kind: Kind
    id: str
    name: str | None
    type: str | None
    parent_id: str | None
    amount: Decimal | None


def search(
    tenant: TenantView,
    tags: TagIndex,
    costs: EntityCosts,
    text: str,
    limit: int,
    visible: VisibleEntities | None = None,
) -> list[Found]:
    """Return up to ``limit`` things that contain ``text`` in their id or name, in whatever case: first what begins with
    it, and of these what cost most; of all identities and resources, or of the ``visible`` ones.

    All that matches is ranked, but no more of it than that is kept.

    Raises:
        StorageError: the control database cannot be read.
    """
    wanted = text.casefold()
    with tenant.store.control.read() as connection:
        found = chain(
            _identities(connection, costs, text, None if visible is None else visible.identities),
            _resources(connection, costs, text, None if visible is None else visible.resources),
            _tags(tags, costs, wanted),
        )
        return heapq.nsmallest(limit, found, key=lambda each: _rank(each, wanted))


def _rank(found: Found, text: str) -> tuple[bool, bool, Decimal, str, str, str]:
    begins = any(name is not None and name.casefold().startswith(text) for name in (found.id, found.name))
    # Decimal's own minus would round what has more than 28 digits.
    dearest = (found.amount or _ZERO).copy_negate()
    within = (found.type if found.kind == "tag" else found.parent_id) or ""
    return not begins, found.amount is None, dearest, found.kind, found.id, within


def _identities(
    connection: Connection, costs: EntityCosts, text: str, visible: Collection[str] | None
) -> Iterator[Found]:
    for row in matching(connection, IDENTITIES, text):
        entity = row["identity_id"]
        if visible is not None and entity not in visible:
            continue
        yield Found("identity", entity, row["display_name"], row["identity_type"], None, costs.identities.get(entity))


def _resources(
    connection: Connection, costs: EntityCosts, text: str, visible: Collection[str] | None
) -> Iterator[Found]:
    for row in matching(connection, RESOURCES, text):
        entity, topic = row["resource_id"], _topic_name(row)
        if visible is not None and entity not in visible:
            continue
        if topic is not None:
            yield Found("topic", topic, topic, row["resource_type"], row["parent_id"], costs.topics.get(entity))
            continue
        amount = costs.resources.get(entity)
        yield Found("resource", entity, row["display_name"], row["resource_type"], row["parent_id"], amount)


def _topic_name(row: RowMapping) -> str | None:
    """Return the name of a resource that is a topic of its parent."""
    prefix = topic_resource_id(row["parent_id"] or "", "")
    return row["resource_id"].removeprefix(prefix) if row["resource_id"].startswith(prefix) else None


def _tags(tags: TagIndex, costs: EntityCosts, text: str) -> Iterator[Found]:
    for key, value in tags.pairs():
        if text in value.casefold():
            yield Found("tag", value, value, key, None, costs.tags.get((key, value)))
