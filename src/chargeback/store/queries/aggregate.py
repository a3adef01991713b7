"""Sums of the rows of a dataset by time bucket and columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.queries.calendar import Bucket, bucket
from chargeback.store.queries.clusters import CLUSTER_ID, ClusterLookup
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import ROW_COUNT, Addends, add_up
from chargeback.store.queries.scan import Condition, Scan
from chargeback.store.queries.selection import UNTAGGED
from chargeback.store.queries.sql_format import decimal_text, json_text, quoted
from chargeback.store.queries.tag_index import TagIndex

_EVERYTHING: Final = Condition()
TAG_PREFIX: Final = "tag:"
MAX_BUCKETS: Final = 10_000


@dataclass(frozen=True)
class Grouping:
    """By what rows are summed: columns (or ``tag:<key>``) and a unit of time in a zone's calendar."""

    by: tuple[str, ...]
    unit: str
    zone: ZoneInfo


@dataclass(frozen=True)
class GroupKey:
    """What rows are grouped by, as SQL: an expression, named ``d0``, ``d1``, …, and the ``joins`` that it needs."""

    column: str
    joins: str = ""


@dataclass(frozen=True)
class Aggregate:
    """The sums, as the API shows them, and whether older buckets were left out.

    ``rendered`` are the buckets as JSON, ``totals`` the amounts of everything by their names, and ``total_rows``.
    """

    rendered: list[str]
    totals: dict[str, Any]
    truncated: bool = False

    @property
    def buckets(self) -> list[dict[str, Any]]:
        """The buckets as objects."""
        return [json.loads(text) for text in self.rendered]

    @classmethod
    def of_nothing(cls, dataset: Dataset) -> Aggregate:
        """Return the sums of no rows."""
        return cls([], dict.fromkeys(dataset.amounts, "0.00") | {"total_rows": 0})


def aggregate(
    cursor: Cursor,
    dataset: Dataset,
    scan: Scan,
    grouping: Grouping,
    tags: TagIndex,
    partials: PartialFiles | None,
    clusters: ClusterLookup = dict,
) -> Aggregate:
    """Return the sums of a dataset's scan; the totals cover everything, buckets are at most :data:`MAX_BUCKETS`.

    They are added up from ``partials`` where these have what is asked for.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: the dataset cannot be grouped by one of the columns.
    """
    unknown = [name for name in grouping.by if name not in dataset.groups and not name.startswith(TAG_PREFIX)]
    if unknown:
        raise ValueError(f"{dataset.table} cannot be grouped by {', '.join(unknown)}")
    days = scan.days()
    if days is None:
        return Aggregate.of_nothing(dataset)
    when = bucket(grouping.unit, grouping.zone, days)
    by = group_keys(cursor, grouping.by, dataset, tags, clusters)
    keys, joins = f"{when.keys}, {columns_of(by)}", joins_of(by)

    def _sum(addends: Addends) -> tuple[Any, ...]:
        source = addends.only(dataset.shown_sums)
        newest = _enough_days(source, scan, grouping)
        if newest is not None:
            _group(cursor, source, keys, joins, Condition(("date >= $newest",), {"newest": newest}))
            if _count(cursor, "WHERE bucket > $newest", {"newest": newest}) > MAX_BUCKETS:
                return _totals(cursor, dataset, source)
        _group(cursor, source, keys, joins)
        sums = {name: f"sum({name})" for name in source.sums}
        return _totals(cursor, dataset, Addends("grouped", _EVERYTHING, sums))

    total_rows, *amounts = add_up(cursor, partials, dataset, scan, f"{keys} {joins}", _sum)
    if not total_rows:
        return Aggregate.of_nothing(dataset)
    buckets = _count(cursor)
    truncated = buckets > MAX_BUCKETS
    kept = _newest_buckets(cursor, when) if truncated else "grouped"
    totals = dict(zip(dataset.amounts, amounts, strict=True)) | {"total_rows": total_rows}
    return Aggregate(_buckets(cursor, kept, when, grouping.by, dataset.amounts), totals, truncated)


def named(expressions: Mapping[str, str]) -> str:
    """Return a SELECT list of expressions (SQL) under their names."""
    return ", ".join(f"{sql} AS {name}" for name, sql in expressions.items())


def _texts(amounts: Mapping[str, str]) -> str:
    return ", ".join(decimal_text(sql) for sql in amounts.values())


def _enough_days(source: Addends, scan: Scan, grouping: Grouping) -> date | None:
    """Return a UTC day since which there may be more than enough buckets, where those of all days would be too many and
    a day's rows are little more than its buckets; else None. In other zones, days after that one are complete, too."""
    days = sorted({file.day for file in scan.files if file.day is not None})
    if not source.are_partial or source.rows <= MAX_BUCKETS or grouping.unit != "day":
        return None
    enough = MAX_BUCKETS * len(days) // source.rows + 3
    return days[-enough] if enough <= len(days) // 2 else None


def _count(cursor: Cursor, where: str = "", parameters: Mapping[str, object] | None = None) -> int:
    return int(cursor.rows(f"SELECT count(*) FROM grouped {where}", parameters)[0][0])


def _totals(cursor: Cursor, dataset: Dataset, source: Addends) -> tuple[Any, ...]:
    """The number of rows and the amounts of everything; no number where there is nothing."""
    return cursor.rows(
        f"""SELECT {ROW_COUNT}::BIGINT, {_texts(dataset.amounts)}
            FROM (SELECT {named(source.sums)} FROM {source.relation} WHERE {source.condition.sql})""",
        source.condition.parameters,
    )[0]


def _group(cursor: Cursor, source: Addends, keys: str, joins: str, also: Condition = _EVERYTHING) -> None:
    """Sums everything, or what matches ``also``, into the cursor's own table ``grouped``."""
    condition = source.condition & also
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE grouped AS SELECT {keys}, {named(source.sums)}
            FROM {source.relation} AS facts {joins} WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )


def group_keys(
    cursor: Cursor, by: Sequence[str], dataset: Dataset, tags: TagIndex, clusters: ClusterLookup
) -> list[GroupKey]:
    """Return what the rows of a dataset are grouped by, as SQL; small tables that it joins are registered."""
    return [_group_key(cursor, number, name, dataset, tags, clusters) for number, name in enumerate(by)]


def _group_key(
    cursor: Cursor, number: int, name: str, dataset: Dataset, tags: TagIndex, clusters: ClusterLookup
) -> GroupKey:
    if name == CLUSTER_ID:
        relation = f"clusters_{number}"
        join = _lookup(cursor, relation, clusters(), dataset.cluster_of)
        return GroupKey(f"{relation}.value AS d{number}", join)
    if not name.startswith(TAG_PREFIX):
        return GroupKey(f"{name} AS d{number}")
    joins, values = [], []
    for owner, its_id in dataset.tag_sources.items():
        relation = f"tags_of_{owner}_{number}"
        joins.append(_lookup(cursor, relation, tags.holders(owner, name.removeprefix(TAG_PREFIX)), its_id))
        values.append(f"{relation}.value")
    return GroupKey(f"coalesce({', '.join(values)}, '{UNTAGGED}') AS d{number}", " ".join(joins))


def _lookup(cursor: Cursor, relation: str, values: Mapping[str, str], its_id: str) -> str:
    """Register the values of some ids as a table, and return the join that finds that of each row."""
    table = {"entity": pa.array(values.keys(), pa.string()), "value": pa.array(values.values(), pa.string())}
    cursor.register(relation, pa.table(table))
    return f"LEFT JOIN {relation} ON {relation}.entity = {its_id}"


def columns_of(keys: Iterable[GroupKey]) -> str:
    """Return the columns of some keys, as a SELECT list."""
    return ", ".join(key.column for key in keys)


def joins_of(keys: Iterable[GroupKey]) -> str:
    """Return the joins that some keys need."""
    return " ".join(key.joins for key in keys)


def _newest_buckets(cursor: Cursor, when: Bucket) -> str:
    """The relation that remains when the oldest time buckets are left out whole; of a single time bucket that is too
    large by itself, what has the largest amounts."""
    times = cursor.rows(f"SELECT {when.order}, count(*) FROM grouped GROUP BY ALL ORDER BY 1 DESC")
    room, oldest = MAX_BUCKETS, None
    for time, buckets in times:
        if buckets > room:
            break
        room, oldest = room - buckets, time
    if oldest is None:
        cursor.run(
            f"""CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM grouped WHERE {when.order} = $newest
                ORDER BY abs(total) DESC, * LIMIT {MAX_BUCKETS}""",
            {"newest": times[0][0]},
        )
    else:
        cursor.run(
            f"CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM grouped WHERE {when.order} >= $oldest",
            {"oldest": oldest},
        )
    return "kept"


def _buckets(cursor: Cursor, relation: str, when: Bucket, by: Sequence[str], amounts: Mapping[str, str]) -> list[str]:
    """Written by the database: there may be thousands, and making objects of them takes longer than summing."""
    dimensions = ", ".join(f"""'"{name}":' || coalesce({json_text(f"d{n}")}, 'null')""" for n, name in enumerate(by))
    members = [
        f"""'"dimensions":{{' || concat_ws(',', {dimensions}) || '}}'""",
        f"""'"time_bucket":' || {quoted(when.label)}""",
        *(f"""'"{name}":' || {quoted(decimal_text(sql))}""" for name, sql in amounts.items()),
        """'"row_count":' || row_count""",
    ]
    order = ", ".join(f"d{number} NULLS FIRST" for number in range(len(by)))
    rows = cursor.rows(
        f"SELECT '{{' || concat_ws(',', {', '.join(members)}) || '}}' FROM {relation} ORDER BY {when.order}, {order}"
    )
    return [text for (text,) in rows]
