"""Topic rows: the list, their sums, the days that have any, and the CSV file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import pyarrow as pa

from chargeback.model.days import InstantRange
from chargeback.model.topics import TOPIC_RESOURCE_SQL
from chargeback.store.facts.tables import TOPICS_TABLE, FactTables
from chargeback.store.queries import aggregate as sums
from chargeback.store.queries.aggregate import TAG_PREFIX, Grouping, newest_buckets
from chargeback.store.queries.calendar import Bucket, bucket
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.export import text_of
from chargeback.store.queries.filters import UNTAGGED, TagFilter
from chargeback.store.queries.paging import Page, page_of
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.tags import TagBook
from chargeback.store.queries.text import END_OF_LINE, csv_text, decimal_text, instant_text

#: What topic rows may be grouped by, beside ``tag:<key>``.
TOPIC_GROUP_COLUMNS: Final = (
    "topic_name",
    "cluster_resource_id",
    "env_id",
    "product_type",
    "product_category",
    "attribution_method",
)

_FIELDS: Final = {
    "dimension_id": "dimension_id",
    "ecosystem": "ecosystem",
    "tenant_id": "tenant_id",
    "timestamp": instant_text("timestamp"),
    "env_id": "env_id",
    "cluster_resource_id": "cluster_resource_id",
    "topic_name": "topic_name",
    "product_category": "product_category",
    "product_type": "product_type",
    "attribution_method": "attribution_method",
    "amount": decimal_text("amount"),
}
_COLUMNS: Final = ", ".join(_FIELDS.values())

#: The columns of the CSV file, as SQL that writes their fields. What is not known is empty.
TOPIC_EXPORT_COLUMNS: Final = {
    "ecosystem": csv_text("ecosystem"),
    "tenant_id": csv_text("tenant_id"),
    "timestamp": instant_text("timestamp"),
    "env_id": f"coalesce({csv_text('env_id')}, '')",
    "cluster_resource_id": csv_text("cluster_resource_id"),
    "topic_name": csv_text("topic_name"),
    "product_category": csv_text("product_category"),
    "product_type": csv_text("product_type"),
    "attribution_method": csv_text("attribution_method"),
    "amount": decimal_text("amount"),
}
_LINE: Final = ", ',', ".join(f"({field})" for field in TOPIC_EXPORT_COLUMNS.values())
_BATCH: Final = 50_000


@dataclass(frozen=True)
class TopicFilters:
    """Columns that must equal a value, and tags that the topic must have. What is None is not asked for."""

    cluster_resource_id: str | None = None
    topic_name: str | None = None
    product_type: str | None = None
    attribution_method: str | None = None
    tags: tuple[TagFilter, ...] = ()

    def condition(self, book: TagBook) -> Condition:
        """The filter as SQL."""
        equal = {
            name: value
            for name in ("cluster_resource_id", "topic_name", "product_type", "attribution_method")
            if (value := getattr(self, name)) is not None
        }
        condition = Condition(tuple(f"{name} = ${name}" for name in equal), dict(equal))
        for number, tag in enumerate(self.tags):
            condition &= _tag_condition(number, tag, book)
        return condition


def _tag_condition(number: int, tag: TagFilter, book: TagBook) -> Condition:
    _, holders = book.holders(tag.key)
    ways, parameters = ["FALSE"], {}
    wanted = [entity for entity, value in holders.items() if tag.values is None or value in tag.values]
    if wanted:
        ways.append(f"{TOPIC_RESOURCE_SQL} IN (SELECT unnest($tag{number}_wanted::VARCHAR[]))")
        parameters[f"tag{number}_wanted"] = wanted
    if tag.values is not None and UNTAGGED in tag.values:
        if not holders:
            return Condition()
        ways.append(f"{TOPIC_RESOURCE_SQL} NOT IN (SELECT unnest($tag{number}_holders::VARCHAR[]))")
        parameters[f"tag{number}_holders"] = list(holders)
    return Condition((f"({' OR '.join(ways)})",), dict(parameters))


def topic_rows(
    cursor: Cursor, facts: FactTables, window: InstantRange, filters: TopicFilters, page: Page
) -> tuple[list[dict[str, Any]], int]:
    """One page of the rows of ``window``, by time and ids, and how many there are.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(TOPICS_TABLE), window)
    rows, total = page_of(cursor, scan, filters.condition(TagBook()), _COLUMNS, page)
    return [dict(zip(_FIELDS, row, strict=True)) for row in rows], total


def topic_dates(facts: FactTables) -> list[date]:
    """The UTC days that have topic rows, ascending; known without opening a file of facts.

    Raises:
        StorageError: the table cannot be read.
    """
    return facts.snapshot(TOPICS_TABLE).days


@dataclass(frozen=True)
class TopicSums:
    """The sums, as the API shows them, and whether older buckets were left out of ``buckets``."""

    buckets: list[dict[str, Any]]
    total_amount: str = "0.00"
    total_rows: int = 0
    truncated: bool = False


def topic_sums(
    cursor: Cursor, facts: FactTables, window: InstantRange, grouping: Grouping, filters: TopicFilters, book: TagBook
) -> TopicSums:
    """The sums of ``window``; the totals cover everything, buckets are at most
    :data:`~chargeback.store.queries.aggregate.MOST_BUCKETS`.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(TOPICS_TABLE), window)
    days = scan.days()
    if days is None:
        return TopicSums([])
    when = bucket(grouping.unit, grouping.zone, days)
    _group(cursor, scan, when, grouping, filters.condition(book), book)
    total, rows, buckets = cursor.rows(
        f"SELECT {decimal_text('sum(total)')}, sum(row_count)::BIGINT, count(*) FROM grouped"
    )[0]
    if buckets == 0:
        return TopicSums([])
    truncated = buckets > sums.MOST_BUCKETS
    kept = newest_buckets(cursor, when) if truncated else "grouped"
    return TopicSums(_buckets(cursor, kept, when, grouping.by), total, rows, truncated)


def _group(cursor: Cursor, scan: Scan, when: Bucket, grouping: Grouping, narrowed: Condition, book: TagBook) -> None:
    """Sums everything into the cursor's own table ``grouped``."""
    columns, joins = [], []
    for number, name in enumerate(grouping.by):
        if not name.startswith(TAG_PREFIX):
            columns.append(f"{name} AS d{number}")
            continue
        _, holders = book.holders(name.removeprefix(TAG_PREFIX))
        table = {"entity": pa.array(holders.keys(), pa.string()), "value": pa.array(holders.values(), pa.string())}
        cursor.register(f"topic_tags_{number}", pa.table(table))
        joins.append(f"LEFT JOIN topic_tags_{number} ON topic_tags_{number}.entity = {TOPIC_RESOURCE_SQL}")
        columns.append(f"coalesce(topic_tags_{number}.value, '{UNTAGGED}') AS d{number}")
    condition = scan.condition() & narrowed
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE grouped AS
            SELECT {when.keys}, {", ".join(columns)}, sum(amount) AS total, count(*) AS row_count
            FROM {SOURCE} AS facts {" ".join(joins)} WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )


def _buckets(cursor: Cursor, relation: str, when: Bucket, by: tuple[str, ...]) -> list[dict[str, Any]]:
    dimensions = ", ".join(f"d{number}" for number in range(len(by)))
    order = ", ".join(f"d{number} NULLS FIRST" for number in range(len(by)))
    rows = cursor.rows(
        f"SELECT {when.label}, {decimal_text('total')}, row_count, {dimensions} "
        f"FROM {relation} ORDER BY {when.order}, {order}"
    )
    return [
        {
            "dimensions": dict(zip(by, row[3:], strict=True)),
            "time_bucket": row[0],
            "total_amount": row[1],
            "row_count": row[2],
        }
        for row in rows
    ]


def topic_csv(cursor: Cursor, facts: FactTables, window: InstantRange) -> Iterator[memoryview]:
    """The header and then all rows of ``window`` in the order of the list, as UTF-8 CSV, some thousand rows at a time.

    Nothing is read before the first chunk is asked for.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    yield memoryview(f"{','.join(TOPIC_EXPORT_COLUMNS)}{END_OF_LINE}".encode())
    scan = Scan.of(facts.snapshot(TOPICS_TABLE), window)
    if not scan.files:
        return
    condition = scan.condition()
    sql = f"SELECT concat({_LINE}, chr(13) || chr(10)) FROM {SOURCE} WHERE {condition.sql}"
    for batch in cursor.batches(sql, condition.parameters, size=_BATCH):
        yield text_of(batch.column(0))
