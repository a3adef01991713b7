"""Keys by which rows are summed: columns, tags, cost categories, clusters, days and units of time.

Units of time follow a zone's calendar. A zone is a handful of offsets from UTC, each valid for some months. Adding the
offset of its segment to a timestamp and dividing by the length of a day is some ten times faster than asking the
database's own calendar per row.

A key says which columns of a dataset it reads, which cost category it needs, and how it is written as SQL. Its values
are the columns ``d0``, ``d1``, … of the sums, in the order of the keys; those of days and times have their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import pyarrow as pa

from chargeback.model.dated import DatedValue
from chargeback.model.days import DayRange, start_of_day
from chargeback.model.inventory import UNTAGGED
from chargeback.store.queries.clusters import CLUSTER_ID, ClusterLookup
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.lookups import CATEGORY_PREFIX, CategoryLookup, CategoryName, ancestors
from chargeback.store.queries.scan import microseconds
from chargeback.store.queries.tag_index import TagIndex, all_undated

BUCKETS: Final = ("hour", "day", "week", "month", "all")

_STEP = timedelta(hours=6)
_SECOND: Final = 1_000_000
_HOUR: Final = 3600 * _SECOND
_DAY: Final = 24 * _HOUR


@dataclass(frozen=True)
class TimeBucket:
    """How rows are put into time buckets.

    ``columns`` are the expressions to group by: ``bucket`` and, for hours, ``utc_offset`` (seconds): when the clock
    is put back, an hour comes twice, with different offsets. ``order`` sorts buckets by time, ``label`` writes them.
    """

    columns: Mapping[str, str]
    order: str
    label: str


def bucket(unit: str, zone: ZoneInfo, days: DayRange) -> TimeBucket:
    """Buckets of ``unit`` (one of :data:`BUCKETS`) in ``zone``, for rows of the UTC ``days``; ``all`` is a single one,
    with the first day as its label."""
    if unit == "all":
        return TimeBucket(columns={"bucket": f"DATE '{days.start}'"}, order="bucket", label="bucket::VARCHAR")
    segments = _segments(zone, days)
    local = f"(epoch_us(timestamp) + {_offset_sql(segments, _SECOND)})"
    if unit == "hour":
        return TimeBucket(
            columns={"bucket": f"({local} // {_HOUR})", "utc_offset": _offset_sql(segments, 1)},
            order=f"(bucket * {_HOUR} - utc_offset * {_SECOND})",
            label=f"strftime(make_timestamp(bucket * {_HOUR}), '%Y-%m-%dT%H:00:00') || {_offset_label(segments)}",
        )
    in_utc = segments == ((0, 0),)
    day = "date" if in_utc else f"(DATE '1970-01-01' + ({local} // {_DAY})::INTEGER)"
    key = day if unit == "day" else f"date_trunc('{unit}', {day})::DATE"
    return TimeBucket(columns={"bucket": key}, order="bucket", label="bucket::VARCHAR")


@lru_cache(maxsize=256)
def _segments(zone: ZoneInfo, days: DayRange) -> tuple[tuple[int, int], ...]:
    """(first microsecond since 1970, offset in seconds) of every stretch of constant offset, ascending."""
    moment, end = start_of_day(days.start), start_of_day(days.end)
    offset = _offset(zone, moment)
    segments = [(0, offset)]
    while moment < end:
        following = min(moment + _STEP, end)
        if _offset(zone, following) != offset:
            change = _change(zone, moment, following)
            offset = _offset(zone, following)
            segments.append((microseconds(change), offset))
        moment = following
    return tuple(segments)


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second with another offset than ``before``'s, up to ``after``."""
    first = _offset(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if _offset(zone, middle) == first:
            before = middle
        else:
            after = middle
    return after


def _offset(zone: ZoneInfo, instant: datetime) -> int:
    offset = instant.astimezone(UTC).astimezone(zone).utcoffset() or timedelta()
    return offset // timedelta(seconds=1)


def _offset_sql(segments: tuple[tuple[int, int], ...], unit: int) -> str:
    """The offset at ``timestamp``, in seconds times ``unit``."""
    if len(segments) == 1:
        return f"({segments[0][1] * unit})::BIGINT"
    later = "".join(
        f" WHEN epoch_us(timestamp) >= {start} THEN {offset * unit}" for start, offset in reversed(segments[1:])
    )
    return f"(CASE{later} ELSE {segments[0][1] * unit} END)::BIGINT"


def _offset_label(segments: tuple[tuple[int, int], ...]) -> str:
    cases = "".join(f" WHEN {offset} THEN '{offset_text(offset)}'" for offset in {offset for _, offset in segments})
    return f"(CASE utc_offset{cases} END)"


def offset_text(seconds: int) -> str:
    """An offset from UTC as ISO 8601 writes it.

    >>> offset_text(-12600), offset_text(0)
    ('-03:30', '+00:00')
    """
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


TAG_PREFIX: Final = "tag:"
_TEXT: Final = "VARCHAR"


@dataclass(frozen=True)
class KeySql:
    """A key as SQL.

    Attributes:
        columns: the expressions, by the names of their columns; that of a value is empty: its place decides it.
        kinds: the types of these.
        joins: the joins that they need; the rows are named ``stored`` there.
        reads: the columns of the dataset that they read.
        category: the cost category whose column is among them.
        tag: the tag whose values they are.
    """

    columns: Mapping[str, str]
    joins: str = ""
    reads: frozenset[str] = frozenset()
    category: str | None = None
    kinds: tuple[str, ...] = (_TEXT,)
    tag: str | None = None


@dataclass(frozen=True)
class KeyLookups:
    """What keys look up for the rows of one dataset; a small table that they join is registered once."""

    cursor: Cursor
    dataset: Dataset
    tags: TagIndex
    clusters: ClusterLookup
    categories: CategoryLookup
    days: DayRange | None
    registered: dict[Hashable, str] = field(default_factory=dict)

    def join_held(
        self, name: Hashable, holders: Mapping[str, Sequence[DatedValue]], its_id: str
    ) -> tuple[str, str, frozenset[str]]:
        """Return the same as of :meth:`join_dated`, and the columns that are read in addition to the id: the day, if
        some value does not always hold."""
        if all(all_undated(values) for values in holders.values()):
            undated = {holder: values[0].value for holder, values in holders.items()}
            return *self.join_values(name, lambda: undated, its_id), frozenset()
        return *self.join_dated(name, holders, its_id), frozenset({"date"})

    def join_values(self, name: Hashable, values: Callable[[], Mapping[str, str]], its_id: str) -> tuple[str, str]:
        """Return the registered table of the values of some ids, and the join that finds that of each row."""

        def _table() -> pa.Table:
            found = values()
            return pa.table(
                {"entity": pa.array(found.keys(), pa.string()), "value": pa.array(found.values(), pa.string())}
            )

        relation = self._registered(name, _table)
        return relation, f"LEFT JOIN {relation} ON {relation}.entity = {its_id}"

    def join_dated(self, name: Hashable, holders: Mapping[str, Sequence[DatedValue]], its_id: str) -> tuple[str, str]:
        """Return the same of values that hold on some days: a row has that of its UTC day."""

        def _table() -> pa.Table:
            held = [(holder, each) for holder, values in holders.items() for each in values]
            return pa.table(
                {
                    "entity": pa.array([holder for holder, _ in held], pa.string()),
                    "value": pa.array([each.value for _, each in held], pa.string()),
                    "holds_from": pa.array([each.during.first or date.min for _, each in held], pa.date32()),
                    "holds_to": pa.array([each.during.end or date.max for _, each in held], pa.date32()),
                }
            )

        relation = self._registered(name, _table)
        join = (
            f"LEFT JOIN {relation} ON {relation}.entity = {its_id} "
            f"AND {relation}.holds_from <= stored.date AND stored.date < {relation}.holds_to"
        )
        return relation, join

    def _registered(self, name: Hashable, make: Callable[[], pa.Table]) -> str:
        if name not in self.registered:
            self.registered[name] = self.cursor.register(self.cursor.new_name("values"), make())
        return self.registered[name]


class Key(Protocol):
    """Something that rows are summed by."""

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the key as SQL over the rows of a dataset.

        Raises:
            UnknownCategory: the tenant has no such cost category.
        """


@dataclass(frozen=True)
class ByColumn:
    """A column of the dataset."""

    column: str

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the column."""
        return KeySql({"": self.column}, reads=frozenset([self.column]))


@dataclass(frozen=True)
class ByCluster:
    """The cluster of a row's resource."""

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return what the inventory says."""
        its_id = lookups.dataset.cluster_of
        relation, join = lookups.join_values(self, lookups.clusters, its_id)
        return KeySql({"": f"{relation}.value"}, join, frozenset([its_id]))


@dataclass(frozen=True)
class ByTag:
    """The value of a tag on the day of a row."""

    key: str

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the value of the first tag source that has the key."""
        joins, values, reads = [], [], frozenset[str]()
        for owner, its_id in lookups.dataset.tag_sources.items():
            holders = lookups.tags.holders(owner, self.key)
            if not holders:
                continue
            relation, join, needed = lookups.join_held((owner, self.key), holders, its_id)
            reads |= lookups.dataset.tag_columns_of(owner) | needed
            joins.append(join)
            values.append(f"{relation}.value")
        first = ", ".join([*values, f"'{UNTAGGED}'"])
        return KeySql({"": f"coalesce({first})"}, " ".join(joins), reads, tag=self.key)


@dataclass(frozen=True)
class ByTagHolder:
    """The id by which a row has the tags of an identity or of a resource."""

    owner: str

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the id."""
        return KeySql({"": lookups.dataset.tag_sources[self.owner]}, reads=lookups.dataset.tag_columns_of(self.owner))


@dataclass(frozen=True)
class ByCategory:
    """The value of a cost category or, at level 1, what this belongs to, and so on."""

    key: str
    level: int = 0

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the value."""
        index = lookups.categories.index
        column = f"category_{index.place(self.key)}"
        if not self.level:
            return KeySql({"": column}, category=self.key)
        relation, join, reads = lookups.join_held(self, ancestors(index.category(self.key), self.level), column)
        return KeySql({"": f"coalesce({relation}.value, {column})"}, join, reads, category=self.key)


@dataclass(frozen=True)
class ByRule:
    """The place of the rule of a cost category that decided; null where none did."""

    key: str

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the place."""
        column = f"rule_{lookups.categories.index.place(self.key)}"
        return KeySql({"": column}, category=self.key, kinds=("INTEGER",))


@dataclass(frozen=True)
class ByDay:
    """The UTC day; the column is ``date``."""

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the day."""
        return KeySql({"date": "date"}, reads=frozenset(["date"]), kinds=("DATE",))


@dataclass(frozen=True)
class ByTime:
    """A unit of time in a zone's calendar, with the columns of a :class:`~chargeback.store.queries.keys.TimeBucket`."""

    unit: str
    zone: ZoneInfo

    def on(self, lookups: KeyLookups) -> KeySql:
        """Return the unit of time, and for hours the offset from UTC."""
        if lookups.days is None:
            return KeySql({"bucket": "NULL", "utc_offset": "NULL"}, kinds=("DATE", "BIGINT"))
        columns = bucket(self.unit, self.zone, lookups.days).columns
        kinds = ("BIGINT", "BIGINT") if len(columns) > 1 else ("DATE",)
        return KeySql(columns, reads=frozenset(["date", "timestamp"]), kinds=kinds)


#: What says how an amount was posted: the month that it is posted to, the month that it was charged in, whether it is a
#: correction, and which side of one.
POSTED_PERIOD, CHARGE_PERIOD, CHARGE_CLASS, ENTRY = "posted_period", "charge_period", "charge_class", "entry"
POSTING: Final = (POSTED_PERIOD, CHARGE_CLASS, CHARGE_PERIOD)


@dataclass(frozen=True)
class ByPosting:
    """How an amount was posted: one of :data:`POSTING`, or the side of a correction. Only a reader of posted sums
    (:mod:`~chargeback.store.queries.posted`) knows it."""

    name: str

    def on(self, lookups: KeyLookups) -> KeySql:
        """Refuse.

        Raises:
            ValueError: the reader does not read what was posted.
        """
        raise ValueError(f"{lookups.dataset.table} cannot be grouped by {self.name}: they are not posted")


def keys_of(dataset: Dataset, names: Sequence[str]) -> tuple[Key, ...]:
    """Return the keys that names mean: columns, ``tag:<key>``, ``category:<key>@<level>`` and :data:`POSTING`.

    Raises:
        ValueError: the dataset cannot be grouped by one of the columns.
    """
    unknown = [
        name
        for name in names
        if name not in (*dataset.groups, *POSTING) and not name.startswith((TAG_PREFIX, CATEGORY_PREFIX))
    ]
    if unknown:
        raise ValueError(f"{dataset.table} cannot be grouped by {', '.join(unknown)}")
    return tuple(map(_key_of, names))


def _key_of(name: str) -> Key:
    if name.startswith(TAG_PREFIX):
        return ByTag(name.removeprefix(TAG_PREFIX))
    if name.startswith(CATEGORY_PREFIX):
        category = CategoryName.of(name)
        return ByCategory(category.key, category.level)
    if name in POSTING:
        return ByPosting(name)
    return ByCluster() if name == CLUSTER_ID else ByColumn(name)


def numbered(keys: Iterable[KeySql]) -> list[KeySql]:
    """Return keys whose values are named ``d0``, ``d1``, …"""
    found: list[KeySql] = []
    values = 0
    for key in keys:
        if "" in key.columns:
            found.append(replace(key, columns={f"d{values}": key.columns[""]}))
            values += 1
        else:
            found.append(key)
    return found
