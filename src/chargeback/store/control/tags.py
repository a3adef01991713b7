"""Tags of resources and identities, in the control database.

A key of an entity may have several values, in periods (UTC days) that do not overlap; without dates one holds for ever.
Changed and removed values are kept: a query as of an earlier instant has the tags of that time.

Every write first raises the tenant's ``tags_revision``: readers see that their caches are outdated, and on PostgreSQL
the row's lock serialises writers, so that the counts they return are exact. Every change is recorded in the audit log,
as made by ``who``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Date,
    FromClause,
    Integer,
    RowMapping,
    Select,
    Table,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy import Text as TextType
from sqlalchemy.types import TypeEngine

from chargeback.model.dated import FOREVER, DatedValue, Period
from chargeback.model.days import utc_now
from chargeback.store.control.audit import API, TAG_CHANGED, TAG_CREATED, TAG_REMOVED, AuditEntry, record
from chargeback.store.control.catalogue import instant_of_change
from chargeback.store.control.given import EntityIds, among, relation
from chargeback.store.control.inventory_lists import bytewise, contains
from chargeback.store.control.schema import Instant, identities, past_tags, resources, tags, tenant
from chargeback.store.control.tag_periods import Effect, HeldTag, OnExisting, place_value

RESOURCE: Final = "resource"
IDENTITY: Final = "identity"

_ENTITY_KEY: Final = ("entity_type", "entity_id", "tag_key")
_VALUE_NAMES: Final = ("tag_value", "valid_from", "valid_to")
_TYPES: Final[Mapping[str, TypeEngine[Any]]] = {"tag_id": Integer(), "valid_from": Date(), "valid_to": Date()}
_VALUE: Final = tuple(tags.c[name] for name in _VALUE_NAMES)
#: What a tag says of itself. Since when it is known as it is, is a matter of history.
_TAG: Final = tuple(column for column in tags.c if column is not tags.c.known_from)
_AT_ONCE: Final = 1000
#: How many of the latest values are in memory only once, for all that have them.
_SHARED: Final = 10_000
_EntityKey = tuple[str, str, str]


@dataclass(frozen=True)
class TagWrite:
    """A tag to write."""

    entity_type: str
    entity_id: str
    tag_key: str
    tag_value: str
    during: Period = FOREVER

    @property
    def dated(self) -> DatedValue:
        """The value, and the days on which it holds."""
        return DatedValue(self.tag_value, self.during)

    @property
    def entity_key(self) -> _EntityKey:
        """The entity and the key of the tag, which a tag is stored under."""
        return self.entity_type, self.entity_id, self.tag_key


@dataclass(frozen=True)
class TagMatch:
    """Which tags are meant: of one type of entity, with one key, of some ``entities``; None means all."""

    entity_type: str | None = None
    tag_key: str | None = None
    entities: EntityIds | None = None

    def condition(self, connection: Connection) -> ColumnElement[bool]:
        """Return the filter as SQL."""
        clauses = [] if self.entity_type is None else [tags.c.entity_type == self.entity_type]
        clauses += [] if self.tag_key is None else [tags.c.tag_key == self.tag_key]
        if self.entities is not None:
            one_of = [
                and_(tags.c.entity_type == kind, among(connection, tags.c.entity_id, ids))
                for kind, ids in sorted(self.entities.items())
            ]
            clauses.append(or_(False, *one_of))
        return and_(True, *clauses)


@dataclass(frozen=True)
class BulkCounts:
    """The counts of a bulk write."""

    created: int = 0
    updated: int = 0
    skipped: int = 0

    @classmethod
    def of(cls, effects: Iterable[Effect]) -> BulkCounts:
        """Count what became of some writes."""
        counts = Counter(effects)
        return cls(counts[Effect.CREATED], counts[Effect.UPDATED], counts[Effect.SKIPPED])

    def __add__(self, other: BulkCounts) -> BulkCounts:
        """Return the sum."""
        return BulkCounts(self.created + other.created, self.updated + other.updated, self.skipped + other.skipped)


@dataclass
class _Plan:
    """The effects of some writes: the values of each key before and after them, and what became of each write, by
    entity."""

    before: Mapping[_EntityKey, tuple[HeldTag, ...]]
    after: dict[_EntityKey, tuple[HeldTag, ...]] = field(default_factory=dict)
    effects: dict[tuple[str, str], list[Effect]] = field(default_factory=dict)

    def add(self, tag: TagWrite, existing: OnExisting) -> Effect:
        """Add a write; it sees those before it."""
        entity_key = tag.entity_key
        known = self.after.get(entity_key, self.before.get(entity_key, ()))
        name = f"The tag {tag.tag_key} of the {tag.entity_type} {tag.entity_id}"
        self.after[entity_key], effect = place_value(name, known, tag.dated, existing)
        self.effects.setdefault(entity_key[:2], []).append(effect)
        return effect

    def changes(self) -> Iterator[tuple[_EntityKey, HeldTag | None, HeldTag | None]]:
        """Yield each stored tag that is changed or removed, and each new one: (entity_key, before, after)."""
        for entity_key, after in self.after.items():
            kept = {each.tag_id: each for each in after}
            for each in self.before.get(entity_key, ()):
                now = kept.get(each.tag_id)
                if now != each:
                    yield entity_key, each, now
            yield from ((entity_key, None, each) for each in after if each.tag_id is None)


def revision(connection: Connection) -> int:
    """Return how often the tenant's tags were written; 0 if the tenant has no row yet."""
    return connection.execute(select(tenant.c.tags_revision)).scalar() or 0


def every_tag(connection: Connection) -> Iterator[tuple[str, str, str, DatedValue]]:
    """Yield (entity_type, entity_id, tag_key, value) of all tags; the values of a key in the order of their dates."""
    columns = (tags.c.entity_type, tags.c.entity_id, tags.c.tag_key, *_VALUE)
    for row in connection.execute(select(*columns).order_by(tags.c.valid_from.nulls_first())):
        yield row[0], row[1], row[2], _dated(row[3], row[4], row[5])


def every_tag_as_of(connection: Connection, at: datetime) -> Iterator[tuple[str, str, str, DatedValue]]:
    """Yield the same as it was known at an instant."""
    present = select(*_of(tags)).where(tags.c.known_from <= at)
    past = select(*_of(past_tags)).where(past_tags.c.known_from <= at, past_tags.c.known_until > at)
    known = union_all(present, past).subquery()
    for row in connection.execute(select(known).order_by(known.c.valid_from.nulls_first())):
        yield row[0], row[1], row[2], _dated(row[3], row[4], row[5])


@lru_cache(_SHARED)
def _dated(value: str, first: date | None, end: date | None) -> DatedValue:
    """Return a stored value; most have no dates, and many entities have the same."""
    return DatedValue(value, Period(first, end))


def changed_between(connection: Connection, since: datetime, until: datetime | None) -> bool:
    """Return whether a tag was changed after ``since``, up to ``until``; None means now."""

    def _within(column: ColumnElement[Any]) -> ColumnElement[bool]:
        return column > since if until is None else and_(column > since, column <= until)

    changes = (_within(tags.c.known_from), _within(past_tags.c.known_from), _within(past_tags.c.known_until))
    return any(connection.execute(select(exists().where(each))).scalar() for each in changes)


def _of(table: Table) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in (*_ENTITY_KEY, *_VALUE_NAMES)]


def unknown(connection: Connection, writes: Collection[TagWrite]) -> list[tuple[str, str]]:
    """Return (entity_type, entity_id) of the entities that the inventory does not have, in order."""
    given_rows = relation(connection, [list(tag.entity_key) for tag in writes], _ENTITY_KEY)
    in_inventory = [
        and_(given_rows.c.entity_type == kind, exists().where(column == given_rows.c.entity_id))
        for kind, column in ((RESOURCE, resources.c.resource_id), (IDENTITY, identities.c.identity_id))
    ]
    asked = select(given_rows.c.entity_type, given_rows.c.entity_id).distinct().where(not_(or_(*in_inventory)))
    return sorted((entity_type, entity_id) for entity_type, entity_id in connection.execute(asked))


def of_entity(connection: Connection, entity_type: str, entity_id: str) -> list[RowMapping]:
    """Return the tags of one entity, by key and date."""
    asked = _ordered(connection, and_(tags.c.entity_type == entity_type, tags.c.entity_id == entity_id))
    return list(connection.execute(asked).mappings())


def listed(connection: Connection, wanted: TagMatch, *, offset: int, limit: int) -> tuple[list[RowMapping], int]:
    """Return one page of the tags, by entity, key and date, as (rows, number of rows in all)."""
    where = wanted.condition(connection)
    total = connection.execute(select(func.count()).select_from(tags).where(where)).scalar_one()
    if offset >= total:
        return [], total
    page = _ordered(connection, where).offset(offset).limit(limit)
    return list(connection.execute(page).mappings()), total


def every_listed(connection: Connection, wanted: TagMatch) -> Iterator[RowMapping]:
    """Yield the tags, by entity, key and date, while they are read."""
    whole = _ordered(connection, wanted.condition(connection)).execution_options(yield_per=_AT_ONCE)
    yield from connection.execute(whole).mappings()


def _ordered(connection: Connection, where: ColumnElement[bool]) -> Select[Any]:
    entity_keys = (bytewise(connection, tags.c[name]) for name in _ENTITY_KEY)
    return select(*_TAG).where(where).order_by(*entity_keys, tags.c.valid_from.nulls_first())


def keys(connection: Connection, entities: EntityIds | None = None) -> list[str]:
    """Return every tag key in use, by some ``entities`` or, with None, by any."""
    where = TagMatch(entities=entities).condition(connection)
    return sorted(connection.execute(select(tags.c.tag_key).where(where).distinct()).scalars())


def values(connection: Connection, wanted: TagMatch, search: str | None = None) -> list[str]:
    """Return the values in use of the tags; with ``search``, those that contain it, ignoring case."""
    asked = select(tags.c.tag_value).where(wanted.condition(connection)).distinct()
    if search:
        asked = asked.where(contains(connection, tags.c.tag_value, search))
    return sorted(connection.execute(asked).scalars())


def create(
    connection: Connection, tenant_id: str, tag: TagWrite, created_by: str, *, who: str = API
) -> RowMapping | None:
    """Create a tag and return it; return None if the entity already has that key, or has it in just this period.

    Raises:
        TagConflict: the entity has the key in an overlapping period.
    """
    at = _raise_revision(connection)
    plan = _Plan(_existing(connection, [tag.entity_key]))
    if plan.add(tag, OnExisting.KEEP) is Effect.SKIPPED:
        return None
    _apply(connection, tenant_id, plan, created_by, who, at)
    return _row(connection, tag.entity_key, tag.during.first)


def change(
    connection: Connection, tenant_id: str, tag: TagWrite, *, replace_periods: bool = False, who: str = API
) -> RowMapping | None:
    """Change a tag and return it; return None if the entity has no such key.

    Without dates the value of the only period changes. With dates, the value that begins on the same day changes, or a
    new one begins there and the former ends. With ``replace_periods`` the key has no other value than this one.

    Raises:
        TagConflict: the new period overlaps a later one, or the key has several values and no date says which is meant.
    """
    at = _raise_revision(connection)
    plan = _Plan(_existing(connection, [tag.entity_key]))
    if not plan.before:
        return None
    plan.add(tag, OnExisting.REPLACE if replace_periods else OnExisting.CHANGE)
    _apply(connection, tenant_id, plan, who, who, at)
    only = plan.after[tag.entity_key]
    return _row(connection, tag.entity_key, only[0].during.first if len(only) == 1 else tag.during.first)


def remove(connection: Connection, entity_key: _EntityKey, period: Period | None = None, *, who: str = API) -> bool:
    """Remove a tag in all its periods, or only in that which begins as ``period`` does; return whether it existed."""
    at = _raise_revision(connection)
    held = _existing(connection, [entity_key])
    removed = {
        key: tuple(each for each in values if period is None or each.during.first == period.first)
        for key, values in held.items()
    }
    _remove(connection, removed, who, at)
    return any(removed.values())


def remove_many(
    connection: Connection, entity_keys: Collection[_EntityKey], *, dry_run: bool = False, who: str = API
) -> set[_EntityKey]:
    """Remove tags in all their periods, all or none; with ``dry_run``, remove nothing. Return those that existed."""
    if dry_run:
        return set(_existing(connection, entity_keys))
    at = _raise_revision(connection)
    known = _existing(connection, entity_keys)
    _remove(connection, known, who, at)
    return set(known)


def write_many(
    connection: Connection,
    tenant_id: str,
    writes: Sequence[TagWrite],
    *,
    created_by: str,
    override: bool,
    replace_periods: bool = False,
    who: str = API,
) -> BulkCounts:
    """Write tags with the same result as one after the other, in few statements for any number of them.

    A key that an entity already has, from before or from an earlier entry, is changed as by :func:`change` with
    ``override`` and skipped without; but a value with dates of its own is added to those that it does not overlap.
    Either everything is written or nothing.

    Raises:
        TagConflict: two values of a key would hold on the same days.
    """
    at = _raise_revision(connection)
    plan = _plan(connection, writes, override=override, replace_periods=replace_periods)
    _apply(connection, tenant_id, plan, created_by, who, at)
    return BulkCounts.of(chain.from_iterable(plan.effects.values()))


def preview_writes(
    connection: Connection, writes: Sequence[TagWrite], *, override: bool, replace_periods: bool = False
) -> dict[tuple[str, str], BulkCounts]:
    """Return what :func:`write_many` would do now, by (entity_type, entity_id).

    Raises:
        TagConflict: two values of a key would hold on the same days.
    """
    plan = _plan(connection, writes, override=override, replace_periods=replace_periods)
    return {entity: BulkCounts.of(effects) for entity, effects in sorted(plan.effects.items())}


def _plan(connection: Connection, writes: Sequence[TagWrite], *, override: bool, replace_periods: bool) -> _Plan:
    changing = OnExisting.REPLACE if replace_periods else OnExisting.CHANGE
    existing = changing if override else OnExisting.KEEP
    plan = _Plan(_existing(connection, {tag.entity_key for tag in writes}))
    for tag in writes:
        plan.add(tag, existing)
    return plan


def _raise_revision(connection: Connection) -> datetime:
    """Record that tags change; return the instant of the change."""
    connection.execute(update(tenant).values(tags_revision=tenant.c.tags_revision + 1))
    return instant_of_change(connection, utc_now())


def _apply(connection: Connection, tenant_id: str, plan: _Plan, created_by: str, who: str, at: datetime) -> None:
    """Write what a plan changes; removals come first, because of two tags of a key only one may have no first day."""
    changes = list(plan.changes())
    _delete(connection, [before.tag_id for _, before, after in changes if before is not None and after is None], at)
    kept = [(before, after) for _, before, after in changes if before is not None and after is not None]
    _update(connection, kept, at)
    new = [(entity_key, after.held) for entity_key, before, after in changes if before is None and after is not None]
    _insert(connection, tenant_id, new, created_by, at)
    record(connection, who, (_entry(*each) for each in changes))


def _remove(connection: Connection, removed: Mapping[_EntityKey, Sequence[HeldTag]], who: str, at: datetime) -> None:
    _delete(connection, [each.tag_id for values in removed.values() for each in values], at)
    record(
        connection,
        who,
        (_entry(entity_key, each, None) for entity_key in sorted(removed) for each in removed[entity_key]),
    )


def _existing(connection: Connection, entity_keys: Collection[_EntityKey]) -> dict[_EntityKey, tuple[HeldTag, ...]]:
    """Return the present values of each key that is there, by date."""
    given_rows = relation(connection, [list(entity_key) for entity_key in dict.fromkeys(entity_keys)], _ENTITY_KEY)
    same_key = and_(*(tags.c[name] == given_rows.c[name] for name in _ENTITY_KEY))
    columns = (*(tags.c[name] for name in _ENTITY_KEY), tags.c.tag_id, *_VALUE)
    asked = select(*columns).join(given_rows, same_key).order_by(tags.c.valid_from.nulls_first())
    found: dict[_EntityKey, tuple[HeldTag, ...]] = {}
    for entity_type, entity_id, tag_key, tag_id, value, first, end in connection.execute(asked):
        entity_key = (entity_type, entity_id, tag_key)
        found[entity_key] = (*found.get(entity_key, ()), HeldTag(tag_id, _dated(value, first, end)))
    return found


def _row(connection: Connection, entity_key: _EntityKey, first: date | None) -> RowMapping:
    at = and_(*(tags.c[name] == value for name, value in zip(_ENTITY_KEY, entity_key, strict=True)))
    begins = tags.c.valid_from.is_(None) if first is None else tags.c.valid_from == first
    return connection.execute(select(*_TAG).where(at, begins)).mappings().one()


def _entry(entity_key: _EntityKey, before: HeldTag | None, after: HeldTag | None) -> AuditEntry:
    what = TAG_CREATED if before is None else TAG_REMOVED if after is None else TAG_CHANGED
    return AuditEntry(what, "/".join(entity_key), _audited(before), _audited(after))


def _audited(tag: HeldTag | None) -> dict[str, str] | None:
    if tag is None:
        return None
    return {name: text for name, text in zip(_VALUE_NAMES, _fields(tag.held), strict=True) if text is not None}


def _fields(held: DatedValue) -> list[str | None]:
    first, end = held.during.first, held.during.end
    return [held.value, None if first is None else first.isoformat(), None if end is None else end.isoformat()]


def _insert(
    connection: Connection, tenant_id: str, new: Sequence[tuple[_EntityKey, DatedValue]], created_by: str, at: datetime
) -> None:
    if not new:
        return
    given = (*_ENTITY_KEY, *_VALUE_NAMES)
    given_rows = relation(connection, [[*entity_key, *_fields(held)] for entity_key, held in new], given, _TYPES)
    rows = select(
        literal(tenant_id, TextType),
        *(given_rows.c[name] for name in given),
        literal(created_by, TextType),
        literal(at, Instant),
        literal(at, Instant),
    )
    connection.execute(insert(tags).from_select(("tenant_id", *given, "created_by", "created_at", "known_from"), rows))


def _update(connection: Connection, changed: Sequence[tuple[HeldTag, HeldTag]], at: datetime) -> None:
    if not changed:
        return
    rows = [[after.tag_id, *_fields(after.held)] for _, after in changed]
    given_rows = relation(connection, rows, ("tag_id", *_VALUE_NAMES), _TYPES)
    # Dates that are written, even the same ones, are written into their indexes again.
    names = _VALUE_NAMES if any(before.during != after.during for before, after in changed) else _VALUE_NAMES[:1]
    values = {name: given_rows.c[name] for name in names} | {"known_from": at}
    _remember(connection, given_rows, at)
    connection.execute(update(tags).where(tags.c.tag_id == given_rows.c.tag_id).values(values))


def _delete(connection: Connection, tag_ids: Sequence[int | None], at: datetime) -> None:
    if not tag_ids:
        return
    given_rows = relation(connection, [[each] for each in tag_ids], ("tag_id",), _TYPES)
    _remember(connection, given_rows, at)
    connection.execute(delete(tags).where(tags.c.tag_id.in_(select(given_rows.c.tag_id))))


def _remember(connection: Connection, given_rows: FromClause, at: datetime) -> None:
    """Keep what was known, until ``at``, of the tags that are about to be changed."""
    known = (*_ENTITY_KEY, *_VALUE_NAMES, "known_from")
    rows = select(*(tags.c[name] for name in known), literal(at, Instant)).where(
        tags.c.tag_id.in_(select(given_rows.c.tag_id))
    )
    connection.execute(insert(past_tags).from_select((*known, "known_until"), rows))
