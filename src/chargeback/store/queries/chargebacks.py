"""Chargeback rows: the list, one dimension, the days that have any, and what could not be allocated as intended."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

from chargeback.model.chargeback import ALLOCATION_ISSUES, DIMENSION_COLUMNS, USAGE_COST
from chargeback.model.days import InstantRange
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, DIMENSIONS_TABLE, FactTables
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.filters import Filters
from chargeback.store.queries.paging import Page, page_of
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.shapes import CHARGEBACK
from chargeback.store.queries.tags import TagBook
from chargeback.store.queries.text import decimal_text

_ISSUE_KEY: Final = ("ecosystem", "resource_id", "product_type", "identity_id", "allocation_detail")
_ISSUE_ORDER: Final = "resource_id, product_type, identity_id, allocation_detail, ecosystem"
# No list is longer, and beyond some 2^63 the database cannot count.
_MOST_ISSUES: Final = 2**53
_ISSUE_FIELDS: Final = (*_ISSUE_KEY, "row_count", "usage_cost", "shared_cost", "total_cost")


def chargeback_rows(
    cursor: Cursor, facts: FactTables, window: InstantRange, filters: Filters, page: Page, book: TagBook
) -> tuple[list[dict[str, Any]], int]:
    """One page of the rows of ``window``, by time and ids, with their tags, and how many there are.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(CHARGEBACKS_TABLE), window)
    rows, total = page_of(cursor, scan, filters.condition(book), CHARGEBACK.plain, page)
    items = [CHARGEBACK.item(row) for row in rows]
    for item in items:
        item["tags"] = book.resolved(item["identity_id"], item["resource_id"])
    return items, total


def dimension(cursor: Cursor, facts: FactTables, dimension_id: int) -> dict[str, Any] | None:
    """The dimension of that id; None when none was ever written.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    files = [file.path for file in facts.snapshot(DIMENSIONS_TABLE).files if file.rows]
    if not files:
        return None
    fields = ("dimension_id", *DIMENSION_COLUMNS)
    rows = cursor.rows(
        f"SELECT {', '.join(fields)} FROM read_parquet($files) WHERE dimension_id = $id LIMIT 1",
        {"files": files, "id": dimension_id},
    )
    return dict(zip(fields, rows[0], strict=True)) if rows else None


def chargeback_dates(facts: FactTables) -> list[date]:
    """The UTC days that have chargeback rows, ascending; known without opening a file of facts.

    Raises:
        StorageError: the table cannot be read.
    """
    return facts.snapshot(CHARGEBACKS_TABLE).days


def allocation_issues(
    cursor: Cursor, facts: FactTables, window: InstantRange, filters: Filters, page: Page, book: TagBook
) -> tuple[list[dict[str, Any]], int]:
    """One page of what was not allocated as its policy intends, summed over time, by ids; and how many there are.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(CHARGEBACKS_TABLE), window)
    if not scan.files:
        return [], 0
    offset = min(page.offset, _MOST_ISSUES)
    details = Condition(
        ("allocation_detail IN (SELECT unnest($details::VARCHAR[]))",), {"details": list(ALLOCATION_ISSUES)}
    )
    condition = scan.condition() & filters.condition(book) & details
    sql = f"""
        WITH issues AS MATERIALIZED (
            SELECT {", ".join(_ISSUE_KEY)}, count(*) AS row_count, sum(amount) AS total,
                   sum(CASE WHEN cost_type = '{USAGE_COST}' THEN amount ELSE 0 END)::DECIMAL(38, 12) AS used
            FROM {SOURCE} WHERE {condition.sql} GROUP BY ALL
        ),
        page AS (SELECT * FROM issues ORDER BY {_ISSUE_ORDER} LIMIT {page.limit} OFFSET {offset})
        SELECT (SELECT count(*) FROM issues), {", ".join(_ISSUE_KEY)}, row_count, {decimal_text("used")},
               {decimal_text("(total - used)")}, {decimal_text("total")}
        FROM (SELECT 1) LEFT JOIN page ON TRUE
        ORDER BY {_ISSUE_ORDER}
    """
    rows = cursor.rows(sql, condition.parameters)
    items = [dict(zip(_ISSUE_FIELDS, row[1:], strict=True)) for row in rows if row[1] is not None]
    return items, rows[0][0]
