"""What is specific to chargebacks: one dimension, and what could not be allocated as intended."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from chargeback.model.chargeback import ALLOCATION_ISSUES, DIMENSION_COLUMNS
from chargeback.model.days import DayRange
from chargeback.store.facts.tables import DIMENSIONS_TABLE
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.paging import Page
from chargeback.store.queries.partials import ONCE, ROW_COUNT, Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE, Condition
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import decimal_text, exact_text, named

_ISSUE_KEY: Final = ("ecosystem", "resource_id", "product_type", "identity_id", "allocation_detail")
_ISSUE_ORDER: Final = "resource_id, product_type, identity_id, allocation_detail, ecosystem"
#: The amounts of an issue, by the names of the aggregate's.
ISSUE_AMOUNTS: Final = {"usage_cost": "usage_amount", "shared_cost": "shared_amount", "total_cost": "total_amount"}
#: What an issue has.
ISSUE_FIELDS: Final = (*_ISSUE_KEY, "row_count", *ISSUE_AMOUNTS)
# No list is longer, and beyond some 2^63 the database cannot count.
_MAX_ISSUES: Final = 2**53
_ALL: Final = Page(0, _MAX_ISSUES)


def dimension(reader: TenantReader, dimension_id: int) -> dict[str, Any] | None:
    """Return the dimension with that id; None if there was never one, or the reader sees none of its rows.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    files = [file for file in reader.snapshot(DIMENSIONS_TABLE).files if file.rows]
    if not files:
        return None
    if reader.scope is not None and not _is_visible(reader, dimension_id):
        return None
    fields = ("dimension_id", *DIMENSION_COLUMNS)
    rows = reader.cursor.rows(
        f"SELECT {', '.join(fields)} FROM read_parquet($files) WHERE dimension_id = $id LIMIT 1",
        {"files": files, "id": dimension_id},
    )
    return dict(zip(fields, rows[0], strict=True)) if rows else None


def _is_visible(reader: TenantReader, dimension_id: int) -> bool:
    days = reader.dates(CHARGEBACKS)
    if not days:
        return False
    scan = reader.scan(CHARGEBACKS, Selection.of_days(DayRange.spanning(days)))
    if not scan.files:
        return False
    condition = scan.condition() & Condition(("dimension_id = $dimension",), {"dimension": dimension_id})
    return bool(reader.cursor.rows(f"SELECT 1 FROM {SOURCE} WHERE {condition.sql} LIMIT 1", condition.parameters))


def allocation_issues(
    reader: TenantReader, selection: Selection, page: Page = _ALL
) -> tuple[list[dict[str, Any]], int]:
    """Return one page of what was not allocated as its policy intends, summed over time, by ids; and how many there
    are.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    if reader.days_of(CHARGEBACKS, selection) is None:
        return [], 0
    return reader.add_up(CHARGEBACKS, selection, " ".join(_ISSUE_KEY), partial(_issues, reader, page))


def _issues(reader: TenantReader, page: Page, source: Addends) -> tuple[list[dict[str, Any]], int]:
    offset = min(page.offset, _MAX_ISSUES)
    details = Condition(
        ("allocation_detail IN (SELECT unnest($details::VARCHAR[]))",), {"details": list(ALLOCATION_ISSUES)}
    )
    condition = source.condition & details
    sums = {"row_count": source.sums.get(ONCE, source.sums[ROW_COUNT])}
    sums |= {name: sql for name, sql in source.only(CHARGEBACKS.shown_sums).sums.items() if name != ROW_COUNT}
    shown = {name: source.exact(CHARGEBACKS.amounts[of]) for name, of in ISSUE_AMOUNTS.items()}
    amounts = ", ".join(exact_text(name) if source.fine else decimal_text(name) for name in shown)
    sql = f"""
        WITH issues AS MATERIALIZED (
            SELECT {", ".join(_ISSUE_KEY)}, {named(sums)}
            FROM {source.relation} WHERE {condition.sql} GROUP BY ALL
        ),
        page AS (SELECT *, {named(shown)} FROM issues ORDER BY {_ISSUE_ORDER} LIMIT {page.limit} OFFSET {offset})
        SELECT (SELECT count(*) FROM issues), {", ".join(_ISSUE_KEY)}, row_count, {amounts}
        FROM (SELECT 1) LEFT JOIN page ON TRUE
        ORDER BY {_ISSUE_ORDER}
    """
    rows = reader.cursor.rows(sql, condition.parameters)
    items = [dict(zip(ISSUE_FIELDS, row[1:], strict=True)) for row in rows if row[1] is not None]
    return items, rows[0][0]
