"""Topic rows: the list, what they are summed to, the days that have any, and the CSV file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from chargeback.model.days import InstantRange
from chargeback.model.topics import TOPIC_RESOURCE_SQL
from chargeback.store.facts.tables import TOPICS_TABLE, FactTables
from chargeback.store.queries.aggregate import Summed
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

#: What topic rows are summed to; tags are those of the topic.
TOPICS: Final = Summed(
    TOPICS_TABLE,
    sums={"total": "sum(amount)"},
    amounts={"total_amount": "total"},
    tagged={"resource": TOPIC_RESOURCE_SQL},
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
