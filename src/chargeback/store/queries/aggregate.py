"""Sums of rows by time bucket and columns: of chargeback rows, and of whatever else is described as these are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from chargeback.model.chargeback import USAGE_COST
from chargeback.model.days import InstantRange
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.calendar import Bucket, bucket
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.filters import UNTAGGED
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.tags import TagBook
from chargeback.store.queries.text import decimal_text, json_text, quoted

#: What chargebacks may be grouped by, beside ``tag:<key>``.
GROUP_COLUMNS: Final = (
    "identity_id",
    "resource_id",
    "product_type",
    "product_category",
    "cost_type",
    "allocation_method",
    "environment_id",
)
TAG_PREFIX: Final = "tag:"
MOST_BUCKETS: Final = 10_000


@dataclass(frozen=True)
class Summed:
    """What the rows of a table are summed to.

    ``sums`` are the columns of a group, as SQL over its rows; ``total`` is one of them. ``amounts`` are what the API
    shows of them, as SQL over those columns. ``tagged`` gives the id by which a row has the tags of an ``identity``
    or a ``resource``, the one whose tags win first.
    """

    table: str
    sums: Mapping[str, str]
    amounts: Mapping[str, str]
    tagged: Mapping[str, str]


CHARGEBACKS: Final = Summed(
    CHARGEBACKS_TABLE,
    sums={
        "total": "sum(amount)",
        "used": f"sum(CASE WHEN cost_type = '{USAGE_COST}' THEN amount ELSE 0 END)::DECIMAL(38, 12)",
    },
    amounts={"total_amount": "total", "usage_amount": "used", "shared_amount": "(total - used)"},
    tagged={"identity": "identity_id", "resource": "resource_id"},
)


@dataclass(frozen=True)
class Grouping:
    """By what rows are summed: columns (or ``tag:<key>``) and a unit of time in a zone's calendar."""

    by: tuple[str, ...]
    unit: str
    zone: ZoneInfo


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
    def of_nothing(cls, summed: Summed) -> Aggregate:
        """The sums of no rows."""
        return cls([], dict.fromkeys(summed.amounts, "0.00") | {"total_rows": 0})


def aggregate(
    cursor: Cursor,
    facts: FactTables,
    summed: Summed,
    window: InstantRange,
    grouping: Grouping,
    narrowed: Condition,
    book: TagBook,
) -> Aggregate:
    """The sums of ``window``; the totals cover everything, buckets are at most :data:`MOST_BUCKETS`.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(summed.table), window)
    days = scan.days()
    if days is None:
        return Aggregate.of_nothing(summed)
    when = bucket(grouping.unit, grouping.zone, days)
    columns, joins = _dimensions(cursor, grouping.by, book, summed.tagged)
    _group(cursor, scan.condition() & narrowed, f"{when.keys}, {columns}, {_named(summed.sums)}", joins)
    over_all = {name: f"sum({name})" for name in summed.sums} | {"row_count": "sum(row_count)", "buckets": "count(*)"}
    buckets, total_rows, *amounts = cursor.rows(
        f"SELECT buckets, row_count::BIGINT, {_texts(summed.amounts)} FROM (SELECT {_named(over_all)} FROM grouped)"
    )[0]
    if buckets == 0:
        return Aggregate.of_nothing(summed)
    truncated = buckets > MOST_BUCKETS
    kept = _newest_buckets(cursor, when) if truncated else "grouped"
    totals = dict(zip(summed.amounts, amounts, strict=True)) | {"total_rows": total_rows}
    return Aggregate(_buckets(cursor, kept, when, grouping.by, summed.amounts), totals, truncated)


def _named(expressions: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in expressions.items())


def _texts(amounts: Mapping[str, str]) -> str:
    return ", ".join(decimal_text(sql) for sql in amounts.values())


def _group(cursor: Cursor, condition: Condition, columns: str, joins: str) -> None:
    """Sums everything into the cursor's own table ``grouped``."""
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE grouped AS SELECT {columns}, count(*) AS row_count
            FROM {SOURCE} AS facts {joins} WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )


def _dimensions(cursor: Cursor, by: Sequence[str], book: TagBook, tagged: Mapping[str, str]) -> tuple[str, str]:
    """The columns to group by, named ``d0``, ``d1``, …, and the joins that tags need."""
    columns, joins = [], []
    for number, name in enumerate(by):
        if not name.startswith(TAG_PREFIX):
            columns.append(f"{name} AS d{number}")
            continue
        holders = dict(zip(("identity", "resource"), book.holders(name.removeprefix(TAG_PREFIX)), strict=True))
        for owner, its_id in tagged.items():
            relation, values = f"tags_of_{owner}_{number}", holders[owner]
            table = {"entity": pa.array(values.keys(), pa.string()), "value": pa.array(values.values(), pa.string())}
            cursor.register(relation, pa.table(table))
            joins.append(f"LEFT JOIN {relation} ON {relation}.entity = {its_id}")
        found = ", ".join(f"tags_of_{owner}_{number}.value" for owner in tagged)
        columns.append(f"coalesce({found}, '{UNTAGGED}') AS d{number}")
    return ", ".join(columns), " ".join(joins)


def _newest_buckets(cursor: Cursor, when: Bucket) -> str:
    """The relation that remains when the oldest time buckets are left out whole; of a single time bucket that is too
    large by itself, what has the largest amounts."""
    times = cursor.rows(f"SELECT {when.order}, count(*) FROM grouped GROUP BY ALL ORDER BY 1 DESC")
    room, oldest = MOST_BUCKETS, None
    for time, buckets in times:
        if buckets > room:
            break
        room, oldest = room - buckets, time
    if oldest is None:
        cursor.run(
            f"""CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM grouped WHERE {when.order} = $newest
                ORDER BY abs(total) DESC, * LIMIT {MOST_BUCKETS}""",
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
