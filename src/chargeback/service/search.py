"""Find anything of a tenant by a part of its name: identities, resources, topics, and values of tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from sqlalchemy import Connection

from chargeback.model.days import instants
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, EntityKind, InventoryFilter, listed
from chargeback.store.control.tags import IDENTITY, RESOURCE
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection

#: What a tag's value is found as.
TAG: Final = "tag"
#: So many entities of each kind are ranked.
_CANDIDATES: Final = 500
#: Costs of so many days decide the order.
_RANKING_DAYS: Final = 30


@dataclass(frozen=True)
class Found:
    """Something whose id or name contains what was searched for, and what it cost lately, if anything."""

    kind: str
    id: str
    name: str | None
    type: str | None
    parent_id: str | None
    amount: Decimal | None


def search(tenant: TenantView, reader: TenantReader, text: str, last: date | None, limit: int) -> list[Found]:
    """Return what contains ``text`` in its id or name, in whatever case: first what begins with it, and of these what
    cost most in the days up to ``last``, the last calculated one.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    with tenant.store.control.read() as connection:
        candidates = [
            *_entities(connection, IDENTITIES, IDENTITY, text),
            *_entities(connection, RESOURCES, RESOURCE, text),
        ]
    costs = {} if last is None or not candidates else _costs(reader, candidates, last)
    found = [
        Found(each.kind, each.id, each.name, each.type, each.parent_id, costs.get((each.kind, each.id)))
        for each in candidates
    ]
    found += _tag_values(reader, text)
    found.sort(key=lambda each: _rank(each, text.casefold()))
    return found[:limit]


def _rank(found: Found, text: str) -> tuple[bool, bool, Decimal, str, str]:
    names = [found.id.casefold(), (found.name or "").casefold()]
    begins = any(name.startswith(text) for name in names)
    return not begins, found.amount is None, -(found.amount or Decimal(0)), found.kind, found.id


def _entities(connection: Connection, kind: EntityKind, name: str, text: str) -> list[Found]:
    rows, _ = listed(connection, kind, InventoryFilter(search=text), offset=0, limit=_CANDIDATES)
    return [
        Found(
            name,
            row[f"{name}_id"],
            row["display_name"],
            row[f"{name}_type"],
            row["parent_id"] if kind is RESOURCES else None,
            None,
        )
        for row in rows
    ]


def _costs(reader: TenantReader, candidates: list[Found], last: date) -> Mapping[tuple[str, str], Decimal]:
    """Return what some entities cost lately, by kind and id; a topic is a resource that has its own dataset."""
    selection = Selection(instants(last - timedelta(days=_RANKING_DAYS - 1), last))
    costs: dict[tuple[str, str], Decimal] = {}
    for kind, dataset in ((IDENTITY, CHARGEBACKS), (RESOURCE, CHARGEBACKS), (RESOURCE, TOPIC_ATTRIBUTIONS)):
        ids = [each.id for each in candidates if each.kind == kind]
        if ids:
            costs |= {(kind, found): amount for found, amount in _amounts(reader, dataset, selection, kind, ids)}
    return costs


def _amounts(
    reader: TenantReader, dataset: Dataset, selection: Selection, kind: str, ids: list[str]
) -> list[tuple[str, Decimal]]:
    scan = reader.scan(dataset, selection)
    if not scan.files:
        return []
    condition = scan.condition()
    entity = dataset.tag_sources[kind]
    return reader.cursor.rows(
        f"""SELECT {entity} AS entity, sum({dataset.amount}) FROM {SOURCE}
            WHERE {condition.sql} AND {entity} IN (SELECT unnest($ids::VARCHAR[])) GROUP BY entity""",
        condition.parameters | {"ids": ids},
    )


def _tag_values(reader: TenantReader, text: str) -> list[Found]:
    wanted = text.casefold()
    pairs = {
        (key, value)
        for entities in (reader.tags.identities, reader.tags.resources)
        for tags in entities.values()
        for key, value in tags.items()
        if wanted in value.casefold()
    }
    return [Found(TAG, value, value, key, None, None) for key, value in sorted(pairs)]
