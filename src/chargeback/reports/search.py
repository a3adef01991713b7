"""Find anything of a tenant by a part of its name: identities, resources, topics, and values of tags."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from decimal import Decimal
from itertools import chain
from typing import Final, Literal

from pydantic import Field
from sqlalchemy import Connection, RowMapping

from chargeback.model.topics import topic_resource_id
from chargeback.reports.answers import ResponseModel, Sum
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, matching
from chargeback.store.queries.entity_costs import EntityCosts
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.visible_sums import VisibleEntities

Kind = Literal["identity", "resource", "topic", "tag"]

_ZERO: Final = Decimal(0)


class FoundItem(ResponseModel):
    """Something that was found."""

    kind: Kind
    id: str = Field(description="Its id; of a topic, its name; of a tag, its value.", examples=["sa-123abc"])
    name: str | None = Field(examples=["orders-service"])
    type: str | None = Field(description="Its type in the inventory; of a tag, its key.", examples=["service_account"])
    parent_id: str | None = Field(description="Of a resource, what it lies in; of a topic, its cluster.")
    amount: Sum | None = Field(description="What it cost in the last 30 calculated days; null where nothing.")


class FoundList(ResponseModel):
    """What was found."""

    items: list[FoundItem]
    currency: str = Field(examples=["USD"])


def search(
    tenant: TenantView,
    tags: TagIndex,
    costs: EntityCosts,
    text: str,
    limit: int,
    visible: VisibleEntities | None = None,
) -> list[FoundItem]:
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


def _rank(found: FoundItem, text: str) -> tuple[bool, bool, Decimal, str, str, str]:
    begins = any(name is not None and name.casefold().startswith(text) for name in (found.id, found.name))
    # Decimal's own minus would round what has more than 28 digits.
    dearest = (found.amount or _ZERO).copy_negate()
    within = (found.type if found.kind == "tag" else found.parent_id) or ""
    return not begins, found.amount is None, dearest, found.kind, found.id, within


def _identities(
    connection: Connection, costs: EntityCosts, text: str, visible: Collection[str] | None
) -> Iterator[FoundItem]:
    for row in matching(connection, IDENTITIES, text):
        entity = row["identity_id"]
        if visible is not None and entity not in visible:
            continue
        yield FoundItem(
            kind="identity",
            id=entity,
            name=row["display_name"],
            type=row["identity_type"],
            parent_id=None,
            amount=costs.identities.get(entity),
        )


def _resources(
    connection: Connection, costs: EntityCosts, text: str, visible: Collection[str] | None
) -> Iterator[FoundItem]:
    for row in matching(connection, RESOURCES, text):
        entity, topic = row["resource_id"], _topic_name(row)
        if visible is not None and entity not in visible:
            continue
        yield FoundItem(
            kind="resource" if topic is None else "topic",
            id=entity if topic is None else topic,
            name=row["display_name"] if topic is None else topic,
            type=row["resource_type"],
            parent_id=row["parent_id"],
            amount=(costs.resources if topic is None else costs.topics).get(entity),
        )


def _topic_name(row: RowMapping) -> str | None:
    """Return the name of a resource that is a topic of its parent."""
    prefix = topic_resource_id(row["parent_id"] or "", "")
    return row["resource_id"].removeprefix(prefix) if row["resource_id"].startswith(prefix) else None


def _tags(tags: TagIndex, costs: EntityCosts, text: str) -> Iterator[FoundItem]:
    for key, value in tags.pairs():
        if text in value.casefold():
            yield FoundItem(
                kind="tag", id=value, name=value, type=key, parent_id=None, amount=costs.tags.get((key, value))
            )
