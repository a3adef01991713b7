"""Sums of the rows of a dataset by time bucket and columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from chargeback.model.currency import Rates
from chargeback.model.dated import DatedValue
from chargeback.model.days import ONE_DAY, first_day_of
from chargeback.model.inventory import UNTAGGED
from chargeback.model.money import render
from chargeback.store.queries.calendar import Bucket, bucket
from chargeback.store.queries.category_index import CATEGORY_PREFIX, CategoryName, ancestors
from chargeback.store.queries.category_lookup import NO_CATEGORIES, CategoryLookup
from chargeback.store.queries.clusters import CLUSTER_ID, ClusterLookup
from chargeback.store.queries.converted import MONTH, places_of, sums_sql
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import FLOWS, ONCE, ROW_COUNT, Addends, sums_of
from chargeback.store.queries.scan import Condition, Scan
from chargeback.store.queries.sql_format import decimal_text, exact_text, json_text, named, quoted
from chargeback.store.queries.tag_index import TagIndex, all_undated

_EVERYTHING: Final = Condition()
_BUCKETS: Final = "buckets"
TAG_PREFIX: Final = "tag:"
MAX_BUCKETS: Final = 10_000
#: The units of time that begin with a day.
_WHOLE_DAYS: Final = ("day", "week", "month")


@dataclass(frozen=True)
class Grouping:
    """By what rows are summed: columns (or ``tag:<key>``) and a unit of time in a zone's calendar; with ``rates`` in
    another currency, see :mod:`~chargeback.store.queries.converted`."""

    by: tuple[str, ...]
    unit: str
    zone: ZoneInfo
    rates: Rates | None = None


@dataclass(frozen=True)
class GroupKey:
    """What rows are grouped by, as SQL: an expression, named ``d0``, ``d1``, …, and the ``joins`` that it needs;
    ``reads`` are columns that it does not name, but is made of."""

    column: str
    joins: str = ""
    reads: tuple[str, ...] = ()


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
    def of_nothing(cls, amounts: Mapping[str, str]) -> Aggregate:
        """Return the sums of no rows."""
        return cls([], dict.fromkeys(amounts, "0.00") | {"total_rows": 0})


def aggregate(
    cursor: Cursor,
    dataset: Dataset,
    scan: Scan,
    grouping: Grouping,
    by: Sequence[GroupKey],
    add_up: Callable[[str, Callable[[Addends], tuple[Any, ...]]], tuple[Any, ...]],
) -> Aggregate:
    """Return the sums of a dataset's scan by the keys of the grouping; the totals cover everything, buckets are at most
    :data:`MAX_BUCKETS`.

    ``add_up`` gives a query, whose text names what it reads, what it adds up: the rows of the scan, or sums of them.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    amounts = shown_amounts(dataset, grouping)
    days = scan.days()
    if days is None:
        return Aggregate.of_nothing(amounts)
    when, places = bucket(grouping.unit, grouping.zone, days), places_of(grouping.rates)
    exact_sums: dict[str, str] = {}
    keys, joins = f"{when.keys}, {columns_of(by)}", joins_of(by)

    def _sum(addends: Addends) -> tuple[Any, ...]:
        source = addends.only({*dataset.shown_sums, *amounts.values(), ONCE})
        exact_sums.update({name: source.exact(sql, places) for name, sql in amounts.items()})
        shown = [f"{ONCE if ONCE in source.sums else ROW_COUNT}::BIGINT", *exact_sums.values()]
        newest = _enough_days(source, scan, grouping)
        if newest is not None:
            newer = replace(source, condition=source.condition & Condition(("date >= $newest",), {"newest": newest}))
            _group(cursor, newer, keys, joins, grouping.rates)
            found = _buckets_after(cursor, newest)
            if found > MAX_BUCKETS:
                return found, *_totals(cursor, shown, source, grouping.rates)
        _group(cursor, source, keys, joins, grouping.rates)
        sums = {_BUCKETS: "count(*)", **sums_of(source.sums)}
        return _totals(cursor, [_BUCKETS, *shown], Addends("grouped", _EVERYTHING, sums))

    buckets, total_rows, *sums = add_up(f"{keys} {joins} {MONTH if grouping.rates else ''}", _sum)
    if not total_rows:
        return Aggregate.of_nothing(amounts)
    truncated = buckets > MAX_BUCKETS
    kept = _newest_buckets(cursor, when) if truncated else "grouped"
    totals = dict(zip(amounts, sums, strict=True)) | {"total_rows": total_rows}
    fine = {f"exact_{name}": sql for name, sql in exact_sums.items() if sql != amounts[name]}
    texts = {
        name: exact_text(column, places) if (column := f"exact_{name}") in fine else decimal_text(sql, places)
        for name, sql in amounts.items()
    }
    shown = f"(SELECT *, {named(fine)} FROM {kept})" if fine else kept
    return Aggregate(_buckets(cursor, shown, when, grouping.by, texts), totals, truncated)


def shown_amounts(dataset: Dataset, grouping: Grouping) -> Mapping[str, str]:
    """Return what is shown of the sums, as SQL over them, by name; by category also what its values were assigned, and
    what they handed on."""
    if any(name.startswith(CATEGORY_PREFIX) for name in grouping.by):
        return {**dataset.amounts, **FLOWS}
    return dataset.amounts


def _enough_days(source: Addends, scan: Scan, grouping: Grouping) -> date | None:
    """Return a UTC day since which there may be more than enough buckets, where those of all days would be too many and
    a day's rows are little more than its buckets; else None. In other zones, units of time that begin after that day
    are complete, too."""
    days = sorted({file.day for file in scan.files if file.day is not None})
    if not source.are_partial or source.rows <= MAX_BUCKETS or grouping.unit not in _WHOLE_DAYS:
        return None
    # A unit has no fewer buckets than a day of it. Some days have fewer than others.
    enough = MAX_BUCKETS * len(days) * 10 // (source.rows * 9) + 1
    # West of Greenwich, what begins on the last day is still in the unit of the day before.
    newest = days[-1] - ONE_DAY
    for _ in range(min(enough, len(days))):
        newest = first_day_of(grouping.unit, newest) - ONE_DAY
    return newest if newest >= days[len(days) // 2] else None


def _buckets_after(cursor: Cursor, newest: date) -> int:
    return int(cursor.rows("SELECT count(*) FROM grouped WHERE bucket > $newest", {"newest": newest})[0][0])


def _totals(cursor: Cursor, shown: Sequence[str], source: Addends, rates: Rates | None = None) -> tuple[Any, ...]:
    """What is ``shown`` of the sums of everything, as SQL over them: numbers, and amounts as texts; no number where
    there is nothing."""
    sql = f"SELECT {', '.join(shown)} FROM ({sums_sql(source, '', '', rates)})"
    values = cursor.rows(sql, source.condition.parameters)[0]
    return tuple(render(each) if isinstance(each, Decimal) else each for each in values)


def _group(cursor: Cursor, source: Addends, keys: str, joins: str, rates: Rates | None) -> None:
    """Sums everything into the cursor's own table ``grouped``."""
    cursor.run(
        f"CREATE OR REPLACE TEMP TABLE grouped AS {sums_sql(source, keys, joins, rates)}", source.condition.parameters
    )


def group_keys(
    cursor: Cursor,
    by: Sequence[str],
    dataset: Dataset,
    tags: TagIndex,
    clusters: ClusterLookup = dict,
    categories: CategoryLookup = NO_CATEGORIES,
) -> list[GroupKey]:
    """Return what the rows of a dataset are grouped by, as SQL; small tables that it joins are registered.

    Raises:
        UnknownCategory: the tenant has no such cost category.
        ValueError: the dataset cannot be grouped by one of the columns.
    """
    unknown = [name for name in by if name not in dataset.groups and not name.startswith((TAG_PREFIX, CATEGORY_PREFIX))]
    if unknown:
        raise ValueError(f"{dataset.table} cannot be grouped by {', '.join(unknown)}")
    return [
        _category_key(cursor, number, name, dataset, categories)
        if name.startswith(CATEGORY_PREFIX)
        else _group_key(cursor, number, name, dataset, tags, clusters)
        for number, name in enumerate(by)
    ]


def _category_key(cursor: Cursor, number: int, name: str, dataset: Dataset, categories: CategoryLookup) -> GroupKey:
    wanted = CategoryName.of(name)
    column = f"category_{categories.index.place(wanted.key)}"
    reads = categories.columns(dataset, wanted.key)
    if not wanted.level:
        return GroupKey(f"{column} AS d{number}", reads=reads)
    relation = f"levels_{number}"
    above = ancestors(categories.index.category(wanted.key), wanted.level)
    join = _lookup(cursor, relation, above, column)
    return GroupKey(f"coalesce({relation}.value, {column}) AS d{number}", join, reads)


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
        joins.append(_tag_lookup(cursor, relation, tags.holders(owner, name.removeprefix(TAG_PREFIX)), its_id))
        values.append(f"{relation}.value")
    return GroupKey(f"coalesce({', '.join(values)}, '{UNTAGGED}') AS d{number}", " ".join(joins))


def _lookup(cursor: Cursor, relation: str, values: Mapping[str, str], its_id: str) -> str:
    """Register the values of some ids as a table, and return the join that finds that of each row."""
    table = {"entity": pa.array(values.keys(), pa.string()), "value": pa.array(values.values(), pa.string())}
    cursor.register(relation, pa.table(table))
    return f"LEFT JOIN {relation} ON {relation}.entity = {its_id}"


def _tag_lookup(cursor: Cursor, relation: str, holders: Mapping[str, Sequence[DatedValue]], its_id: str) -> str:
    """Register the values of a tag, and return the join that finds that of each row on its UTC day."""
    if all(all_undated(values) for values in holders.values()):
        return _lookup(cursor, relation, {holder: values[0].value for holder, values in holders.items()}, its_id)
    held = [(holder, each) for holder, values in holders.items() for each in values]
    table = {
        "entity": pa.array([holder for holder, _ in held], pa.string()),
        "value": pa.array([each.value for _, each in held], pa.string()),
        "holds_from": pa.array([each.during.first or date.min for _, each in held], pa.date32()),
        "holds_to": pa.array([each.during.end or date.max for _, each in held], pa.date32()),
    }
    cursor.register(relation, pa.table(table))
    return (
        f"LEFT JOIN {relation} ON {relation}.entity = {its_id} "
        f"AND {relation}.holds_from <= facts.date AND facts.date < {relation}.holds_to"
    )


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
    """Written by the database: there may be thousands, and making objects of them takes longer than summing. The
    ``amounts`` are texts, as SQL."""
    dimensions = ", ".join(f"""'"{name}":' || coalesce({json_text(f"d{n}")}, 'null')""" for n, name in enumerate(by))
    members = [
        f"""'"dimensions":{{' || concat_ws(',', {dimensions}) || '}}'""",
        f"""'"time_bucket":' || {quoted(when.label)}""",
        *(f"""'"{name}":' || {quoted(sql)}""" for name, sql in amounts.items()),
        """'"row_count":' || row_count""",
    ]
    order = ", ".join(f"d{number} NULLS FIRST" for number in range(len(by)))
    rows = cursor.rows(
        f"SELECT '{{' || concat_ws(',', {', '.join(members)}) || '}}' FROM {relation} ORDER BY {when.order}, {order}"
    )
    return [text for (text,) in rows]
