"""Tags of resources and identities, in the control database.

Every write first raises the tenant's ``tags_revision``: readers see that their caches are outdated, and on PostgreSQL
the row's lock serialises writers, so that the counts they return are exact.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Subquery,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy import Text as TextType
from sqlalchemy.dialects.postgresql import JSONB

from chargeback.model.days import utc_now
from chargeback.store.control.inventory_lists import bytewise, contains
from chargeback.store.control.schema import Instant, identities, resources, tags, tenant

RESOURCE: Final = "resource"
IDENTITY: Final = "identity"

_PLACE: Final = ("entity_type", "entity_id", "tag_key")
_AT_ONCE: Final = 1000
_Place = tuple[str, str, str]


@dataclass(frozen=True)
class TagWrite:
    """A tag to write."""

    entity_type: str
    entity_id: str
    tag_key: str
    tag_value: str

    @property
    def place(self) -> _Place:
        """The key of the tag."""
        return self.entity_type, self.entity_id, self.tag_key


@dataclass(frozen=True)
class BulkCounts:
    """The counts of a bulk write."""

    created: int = 0
    updated: int = 0
    skipped: int = 0

    def __add__(self, other: BulkCounts) -> BulkCounts:
        """Return the sum."""
        return BulkCounts(self.created + other.created, self.updated + other.updated, self.skipped + other.skipped)


_NO_COUNTS: Final = BulkCounts()


@dataclass
class _Plan:
    """The effects of a bulk write: the tags that it creates and changes, and its counts by entity."""

    created: dict[_Place, TagWrite] = field(default_factory=dict)
    updated: dict[_Place, TagWrite] = field(default_factory=dict)
    counts: dict[tuple[str, str], BulkCounts] = field(default_factory=dict)

    def count(self, tag: TagWrite, done: BulkCounts) -> None:
        """Count one entry."""
        entity = (tag.entity_type, tag.entity_id)
        self.counts[entity] = self.counts.get(entity, _NO_COUNTS) + done


def revision(connection: Connection) -> int:
    """Return how often the tenant's tags were written; 0 if the tenant has no row yet."""
    return connection.execute(select(tenant.c.tags_revision)).scalar() or 0


def every_tag(connection: Connection) -> Iterator[tuple[str, str, str, str]]:
    """Yield (entity_type, entity_id, tag_key, tag_value) of all tags."""
    columns = (tags.c.entity_type, tags.c.entity_id, tags.c.tag_key, tags.c.tag_value)
    for row in connection.execute(select(*columns)):
        yield row[0], row[1], row[2], row[3]


def unknown(connection: Connection, writes: Collection[TagWrite]) -> list[tuple[str, str]]:
    """Return (entity_type, entity_id) of the entities that the inventory does not have, in order."""
    given_rows = _as_rows(connection, writes)
    in_inventory = [
        and_(given_rows.c.entity_type == kind, exists().where(column == given_rows.c.entity_id))
        for kind, column in ((RESOURCE, resources.c.resource_id), (IDENTITY, identities.c.identity_id))
    ]
    asked = select(given_rows.c.entity_type, given_rows.c.entity_id).distinct().where(not_(or_(*in_inventory)))
    return sorted((entity_type, entity_id) for entity_type, entity_id in connection.execute(asked))


def of_entity(connection: Connection, entity_type: str, entity_id: str) -> list[RowMapping]:
    """Return the tags of one entity, by key."""
    asked = select(tags).where(tags.c.entity_type == entity_type, tags.c.entity_id == entity_id)
    return list(connection.execute(asked.order_by(bytewise(connection, tags.c.tag_key))).mappings())


def listed(
    connection: Connection, *, entity_type: str | None, tag_key: str | None, offset: int, limit: int
) -> tuple[list[RowMapping], int]:
    """Return one page of all tags, by entity and key, as (rows, number of rows in all)."""
    where = _where(entity_type, tag_key)
    total = connection.execute(select(func.count()).select_from(tags).where(where)).scalar_one()
    if offset >= total:
        return [], total
    page = _ordered(connection, where).offset(offset).limit(limit)
    return list(connection.execute(page).mappings()), total


def every_listed(connection: Connection, *, entity_type: str | None, tag_key: str | None) -> Iterator[RowMapping]:
    """Yield all tags, by entity and key, while they are read."""
    whole = _ordered(connection, _where(entity_type, tag_key)).execution_options(yield_per=_AT_ONCE)
    yield from connection.execute(whole).mappings()


def _where(entity_type: str | None, tag_key: str | None) -> ColumnElement[bool]:
    return and_(
        True,
        *([tags.c.entity_type == entity_type] if entity_type is not None else []),
        *([tags.c.tag_key == tag_key] if tag_key is not None else []),
    )


def _ordered(connection: Connection, where: ColumnElement[bool]) -> Select[Any]:
    return select(tags).where(where).order_by(*(bytewise(connection, tags.c[name]) for name in _PLACE))


def keys(connection: Connection) -> list[str]:
    """Return every tag key in use."""
    return sorted(connection.execute(select(tags.c.tag_key).distinct()).scalars())


def values(connection: Connection, key: str, search: str | None = None) -> list[str]:
    """Return the values of one key that are in use; with ``search``, those that contain it, ignoring case."""
    asked = select(tags.c.tag_value).where(tags.c.tag_key == key).distinct()
    if search:
        asked = asked.where(contains(connection, tags.c.tag_value, search))
    return sorted(connection.execute(asked).scalars())


def create(connection: Connection, tenant_id: str, tag: TagWrite, created_by: str) -> RowMapping | None:
    """Create a tag and return it; return None if the entity already has that key."""
    _raise_revision(connection)
    if connection.execute(select(tags.c.tag_id).where(_at(tag.place))).first() is not None:
        return None
    row = {
        "tenant_id": tenant_id,
        "entity_type": tag.entity_type,
        "entity_id": tag.entity_id,
        "tag_key": tag.tag_key,
        "tag_value": tag.tag_value,
        "created_by": created_by,
        "created_at": utc_now(),
    }
    return connection.execute(insert(tags).values(row).returning(tags)).mappings().one()


def change(connection: Connection, tag: TagWrite) -> RowMapping | None:
    """Change the value of a tag and return the tag; return None if the entity has no such key."""
    _raise_revision(connection)
    statement = update(tags).where(_at(tag.place)).values(tag_value=tag.tag_value).returning(tags)
    return connection.execute(statement).mappings().first()


def remove(connection: Connection, place: _Place) -> bool:
    """Remove a tag; return whether it existed."""
    _raise_revision(connection)
    return connection.execute(delete(tags).where(_at(place))).rowcount > 0


def remove_many(connection: Connection, places: Collection[_Place], *, dry_run: bool = False) -> set[_Place]:
    """Remove tags, all or none; with ``dry_run``, remove nothing. Return those that existed."""
    writes = [TagWrite(*place, "") for place in places]
    if dry_run:
        return _existing(connection, writes)
    _raise_revision(connection)
    known = _existing(connection, writes)
    if known:
        given_rows = _as_rows(connection, writes)
        connection.execute(delete(tags).where(exists().where(_same_place(given_rows))))
    return known


def write_many(
    connection: Connection, tenant_id: str, writes: Sequence[TagWrite], *, created_by: str, override: bool
) -> BulkCounts:
    """Write tags with the same result as one after the other, in three statements whatever their number is.

    A key that an entity already has, from before or from an earlier entry, is updated with ``override`` and skipped
    without. Either everything is written or nothing.
    """
    _raise_revision(connection)
    plan = _plan(connection, writes, override=override)
    _insert(connection, tenant_id, plan.created.values(), created_by)
    _update(connection, plan.updated.values())
    return sum(plan.counts.values(), _NO_COUNTS)


def preview_writes(
    connection: Connection, writes: Sequence[TagWrite], *, override: bool
) -> dict[tuple[str, str], BulkCounts]:
    """Return what :func:`write_many` would do now, by (entity_type, entity_id)."""
    return dict(sorted(_plan(connection, writes, override=override).counts.items()))


def _plan(connection: Connection, writes: Sequence[TagWrite], *, override: bool) -> _Plan:
    known = _existing(connection, writes)
    plan = _Plan()
    for tag in writes:
        if tag.place not in known and tag.place not in plan.created:
            plan.created[tag.place] = tag
            plan.count(tag, BulkCounts(created=1))
        elif override:
            (plan.updated if tag.place in known else plan.created)[tag.place] = tag
            plan.count(tag, BulkCounts(updated=1))
        else:
            plan.count(tag, BulkCounts(skipped=1))
    return plan


def _raise_revision(connection: Connection) -> None:
    connection.execute(update(tenant).values(tags_revision=tenant.c.tags_revision + 1))


def _at(place: _Place) -> ColumnElement[bool]:
    return and_(*(tags.c[name] == value for name, value in zip(_PLACE, place, strict=True)))


def _as_rows(connection: Connection, writes: Collection[TagWrite]) -> Subquery:
    """Return ``writes`` as a relation, sent as one value: neither database limits its number of entries."""
    document = json.dumps([[*tag.place, tag.tag_value] for tag in writes])
    names = (*_PLACE, "tag_value")
    if connection.dialect.name == "sqlite":
        entry = func.json_each(document).table_valued("value").c.value
        fields = [func.json_extract(entry, f"$[{index}]") for index in range(len(names))]
    else:
        entry = func.jsonb_array_elements(cast(literal(document, TextType), JSONB)).table_valued("value").c.value
        fields = [func.jsonb_extract_path_text(entry, str(index)) for index in range(len(names))]
    return select(*(field.label(name) for field, name in zip(fields, names, strict=True))).subquery()


def _same_place(given_rows: Subquery) -> ColumnElement[bool]:
    return and_(*(tags.c[name] == given_rows.c[name] for name in _PLACE))


def _existing(connection: Connection, writes: Collection[TagWrite]) -> set[_Place]:
    given_rows = _as_rows(connection, writes)
    rows = connection.execute(select(*(tags.c[name] for name in _PLACE)).join(given_rows, _same_place(given_rows)))
    return {(entity_type, entity_id, key) for entity_type, entity_id, key in rows}


def _insert(connection: Connection, tenant_id: str, new: Collection[TagWrite], created_by: str) -> None:
    if not new:
        return
    given_rows = _as_rows(connection, new)
    names = ("tenant_id", *_PLACE, "tag_value", "created_by", "created_at")
    rows = select(
        literal(tenant_id, TextType),
        *(given_rows.c[name] for name in (*_PLACE, "tag_value")),
        literal(created_by, TextType),
        literal(utc_now(), Instant),
    )
    connection.execute(insert(tags).from_select(names, rows))


def _update(connection: Connection, changed: Collection[TagWrite]) -> None:
    if not changed:
        return
    given_rows = _as_rows(connection, changed)
    connection.execute(update(tags).where(_same_place(given_rows)).values(tag_value=given_rows.c.tag_value))
