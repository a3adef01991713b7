"""Search by a part of a name: identities, resources, topics, and values of tags and of cost categories, with their
costs in a period."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import chain, pairwise
from typing import Final, Literal, TypeVar

from pydantic import Field
from sqlalchemy import Connection, RowMapping

from chargeback.categories.document import CategoryValue
from chargeback.model.dated import latest
from chargeback.model.days import InstantRange, start_of_day
from chargeback.model.money import SHARED_PLACES, from_units, to_shared_units
from chargeback.model.topics import topic_resource_id
from chargeback.reports.answers import ResponseModel, Sum
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, matching
from chargeback.store.control.tags import RESOURCE
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.keys import ByCategory, ByColumn, ByTagHolder
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.visible_sums import VisibleEntities

Kind = Literal["identity", "resource", "topic", "tag", "category"]

_ZERO: Final = Decimal(0)

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class EntityCosts:
    """Sums of a period by the id of an identity, of a resource, of a topic in the inventory, by the key and value of a
    tag, and by the key of a cost category and its values, before reallocation."""

    identities: Mapping[str, Decimal] = field(default_factory=dict)
    resources: Mapping[str, Decimal] = field(default_factory=dict)
    topics: Mapping[str, Decimal] = field(default_factory=dict)
    tags: Mapping[tuple[str, str], Decimal] = field(default_factory=dict)
    categories: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)


class FoundItem(ResponseModel):
    """A search result."""

    kind: Kind
    id: str = Field(
        description="The id, the name of a topic, or the value of a tag or a cost category.", examples=["sa-123abc"]
    )
    name: str | None = Field(examples=["orders-service"])
    type: str | None = Field(
        description="The type in the inventory, or the key of a tag or a cost category.", examples=["service_account"]
    )
    parent_id: str | None = Field(
        description="Of a resource, what it lies in; of a topic, its cluster; of a value of a cost category, what it "
        "belongs to."
    )
    amount: Sum | None = Field(description="The cost in the period; null if there is none.")


class FoundList(ResponseModel):
    """Search results."""

    items: list[FoundItem]
    currency: str = Field(examples=["USD"])
    start_date: date = Field(description="The first day of the period of the amounts.")
    end_date: date


def entity_costs(reader: TenantReader, window: InstantRange) -> EntityCosts:
    """Return the costs of everything in a window that a reader sees.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    selection = Selection(window)
    changes = (start_of_day(day) for day in reader.tags.changes)
    bounds = [window.start, *(each for each in changes if window.start < each < window.end), window.end]
    eras = tuple(InstantRange(*each) for each in pairwise(bounds))
    keys = (ByColumn("identity_id"), ByColumn("resource_id"))
    sums = reader.sums(Sums(CHARGEBACKS, selection, keys, periods=eras))
    pairs = [
        (eras[era].start.date(), identity, resource, to_shared_units(amount))
        for era, identity, resource, amount in sums.rows(f"SELECT period, d0, d1, {sums.amount()} FROM sums")
    ]
    topics = reader.sums(Sums(TOPIC_ATTRIBUTIONS, selection, (ByTagHolder(RESOURCE),)))
    values = {
        key: reader.sums(Sums(CHARGEBACKS, selection, (ByCategory(key),))) for key in reader.categories.index.by_key
    }
    return EntityCosts(
        identities=_summed((identity, units) for _, identity, _, units in pairs),
        resources=_summed((resource, units) for _, _, resource, units in pairs),
        topics=dict(topics.rows(f"SELECT d0, {topics.amount()} FROM sums")),
        tags=_summed(
            (tag, units)
            for day, identity, resource, units in pairs
            for tag in reader.tags.resolve(identity, resource, day).items()
        ),
        categories={key: dict(each.rows(f"SELECT d0, {each.amount()} FROM sums")) for key, each in values.items()},
    )


def _summed(parts: Iterable[tuple[K, int]]) -> dict[K, Decimal]:
    sums: dict[K, int] = defaultdict(int)
    for key, units in parts:
        sums[key] += units
    return {key: from_units(units, SHARED_PLACES) for key, units in sums.items()}


def search(
    tenant: TenantView,
    tags: TagIndex,
    costs: EntityCosts,
    text: str,
    limit: int,
    visible: VisibleEntities | None = None,
    registers: Mapping[str, Mapping[str, CategoryValue]] | None = None,
) -> list[FoundItem]:
    """Return up to ``limit`` entities whose id or name contains ``text``, case-insensitive: first those that begin with
    it, ordered by cost. ``visible`` restricts identities and resources. ``registers`` are those of the cost categories
    by key, for callers who may see them; without them, only values with costs are found.

    All matches are ranked, but only the best ``limit`` are kept in memory.

    Raises:
        StorageError: the control database cannot be read.
    """
    wanted = text.casefold()
    with tenant.store.control.read() as connection:
        found = chain(
            _identities(connection, costs, text, None if visible is None else visible.identities),
            _resources(connection, costs, text, None if visible is None else visible.resources),
            _tags(tags, costs, wanted),
            _values(registers or {}, costs, wanted),
        )
        return heapq.nsmallest(limit, found, key=lambda each: _rank(each, wanted))


def _rank(found: FoundItem, text: str) -> tuple[bool, bool, Decimal, str, str, str]:
    begins = any(name is not None and name.casefold().startswith(text) for name in (found.id, found.name))
    # The minus operator of Decimal would round numbers of more than 28 digits.
    dearest = (found.amount or _ZERO).copy_negate()
    within = (found.type if found.kind in ("tag", "category") else found.parent_id) or ""
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


def _values(registers: Mapping[str, Mapping[str, CategoryValue]], costs: EntityCosts, text: str) -> Iterator[FoundItem]:
    for key in {*registers, *costs.categories}:
        register, amounts = registers.get(key, {}), costs.categories.get(key, {})
        for value in {*register, *amounts}:
            known = register.get(value)
            name, parent = (None, None) if known is None else (known.name, latest(known.parent))
            if text in value.casefold() or text in (name or "").casefold():
                yield FoundItem(
                    kind="category", id=value, name=name, type=key, parent_id=parent, amount=amounts.get(value)
                )
