"""Sums of chargeback rows by time bucket and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from chargeback.model.chargeback import USAGE_COST
from chargeback.model.days import InstantRange
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.calendar import Bucket, bucket
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.filters import UNTAGGED, Filters
from chargeback.store.queries.scan import SOURCE, Scan
from chargeback.store.queries.tags import TagBook
from chargeback.store.queries.text import decimal_text

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
class Grouping:
    """By what rows are summed: columns (or ``tag:<key>``) and a unit of time in a zone's calendar."""

    by: tuple[str, ...]
    unit: str
    zone: ZoneInfo


@dataclass(frozen=True)
class Aggregate:
    """The sums, as the API shows them, and whether older buckets were left out of ``buckets``."""

    buckets: list[dict[str, Any]]
    total_amount: str = "0.00"
    usage_amount: str = "0.00"
    shared_amount: str = "0.00"
    total_rows: int = 0
    truncated: bool = False


def aggregate(
    cursor: Cursor, facts: FactTables, window: InstantRange, grouping: Grouping, filters: Filters, book: TagBook
) -> Aggregate:
    """The sums of ``window``; the totals cover everything, buckets are at most :data:`MOST_BUCKETS`.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(CHARGEBACKS_TABLE), window)
    days = scan.days()
    if days is None:
        return Aggregate([])
    when = bucket(grouping.unit, grouping.zone, days)
    _group(cursor, scan, when, grouping, filters, book)
    total, used, shared, rows, buckets = cursor.rows(
        f"SELECT {decimal_text('sum(total)')}, {decimal_text('sum(used)')}, "
        f"{decimal_text('(sum(total) - sum(used))')}, sum(row_count)::BIGINT, count(*) FROM grouped"
    )[0]
    if buckets == 0:
        return Aggregate([])
    truncated = buckets > MOST_BUCKETS
    kept = newest_buckets(cursor, when) if truncated else "grouped"
    return Aggregate(_buckets(cursor, kept, when, grouping.by), total, used, shared, rows, truncated)


def _group(cursor: Cursor, scan: Scan, when: Bucket, grouping: Grouping, filters: Filters, book: TagBook) -> None:
    """Sums everything into the cursor's own table ``grouped``."""
    columns, joins = _dimensions(cursor, grouping.by, book)
    condition = scan.condition() & filters.condition(book)
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE grouped AS
            SELECT {when.keys}, {columns}, sum(amount) AS total, count(*) AS row_count,
                   sum(CASE WHEN cost_type = '{USAGE_COST}' THEN amount ELSE 0 END)::DECIMAL(38, 12) AS used
            FROM {SOURCE} AS facts {joins} WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )


def _dimensions(cursor: Cursor, by: Sequence[str], book: TagBook) -> tuple[str, str]:
    """The columns to group by, named ``d0``, ``d1``, …, and the joins that tags need."""
    columns, joins = [], []
    for number, name in enumerate(by):
        if not name.startswith(TAG_PREFIX):
            columns.append(f"{name} AS d{number}")
            continue
        by_identity, by_resource = book.holders(name.removeprefix(TAG_PREFIX))
        for owner, values in (("identity", by_identity), ("resource", by_resource)):
            relation = f"tags_of_{owner}_{number}"
            table = {"entity": pa.array(values.keys(), pa.string()), "value": pa.array(values.values(), pa.string())}
            cursor.register(relation, pa.table(table))
            joins.append(f"LEFT JOIN {relation} ON {relation}.entity = {owner}_id")
        columns.append(
            f"coalesce(tags_of_identity_{number}.value, tags_of_resource_{number}.value, '{UNTAGGED}') AS d{number}"
        )
    return ", ".join(columns), " ".join(joins)


def newest_buckets(cursor: Cursor, when: Bucket) -> str:
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


def _buckets(cursor: Cursor, relation: str, when: Bucket, by: Sequence[str]) -> list[dict[str, Any]]:
    dimensions = ", ".join(f"d{number}" for number in range(len(by)))
    order = ", ".join(f"d{number} NULLS FIRST" for number in range(len(by)))
    rows = cursor.rows(
        f"SELECT {when.label}, {decimal_text('total')}, {decimal_text('used')}, {decimal_text('(total - used)')}, "
        f"row_count, {dimensions} FROM {relation} ORDER BY {when.order}, {order}"
    )
    return [
        {
            "dimensions": dict(zip(by, row[5:], strict=True)),
            "time_bucket": row[0],
            "total_amount": row[1],
            "usage_amount": row[2],
            "shared_amount": row[3],
            "row_count": row[4],
        }
        for row in rows
    ]
