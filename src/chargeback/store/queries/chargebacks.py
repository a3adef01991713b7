"""What is specific to chargebacks: one dimension, and what could not be allocated as intended."""

from __future__ import annotations

from typing import Any, Final

from chargeback.model.chargeback import ALLOCATION_ISSUES, DIMENSION_COLUMNS
from chargeback.store.facts.tables import DIMENSIONS_TABLE
from chargeback.store.queries.aggregate import named
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE, Condition
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import decimal_text

_ISSUE_KEY: Final = ("ecosystem", "resource_id", "product_type", "identity_id", "allocation_detail")
_ISSUE_ORDER: Final = "resource_id, product_type, identity_id, allocation_detail, ecosystem"
#: The amounts of an issue, by the names of the aggregate's.
ISSUE_AMOUNTS: Final = {"usage_cost": "usage_amount", "shared_cost": "shared_amount", "total_cost": "total_amount"}
#: What an issue has.
ISSUE_FIELDS: Final = (*_ISSUE_KEY, "row_count", *ISSUE_AMOUNTS)
# No list is longer, and beyond some 2^63 the database cannot count.
_MAX_ISSUES: Final = 2**53
_SUMS: Final = {name: CHARGEBACKS.sums[name] for name in CHARGEBACKS.shown_sums}
_ALL: Final = Page(0, _MAX_ISSUES)


def dimension(reader: TenantReader, dimension_id: int) -> dict[str, Any] | None:
    """Return the dimension with that id, or None if there was never one.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    files = [file.path for file in reader.snapshot(DIMENSIONS_TABLE).files if file.rows]
    if not files:
        return None
    fields = ("dimension_id", *DIMENSION_COLUMNS)
    rows = reader.cursor.rows(
        f"SELECT {', '.join(fields)} FROM read_parquet($files) WHERE dimension_id = $id LIMIT 1",
        {"files": files, "id": dimension_id},
    )
    return dict(zip(fields, rows[0], strict=True)) if rows else None


def allocation_issues(
    reader: TenantReader, selection: Selection, page: Page = _ALL
) -> tuple[list[dict[str, Any]], int]:
    """Return one page of what was not allocated as its policy intends, summed over time, by ids; and how many there
    are.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    scan = reader.scan(CHARGEBACKS, selection)
    if not scan.files:
        return [], 0
    offset = min(page.offset, _MAX_ISSUES)
    details = Condition(
        ("allocation_detail IN (SELECT unnest($details::VARCHAR[]))",), {"details": list(ALLOCATION_ISSUES)}
    )
    condition = scan.condition() & details
    amounts = ", ".join(decimal_text(CHARGEBACKS.amounts[name]) for name in ISSUE_AMOUNTS.values())
    sql = f"""
        WITH issues AS MATERIALIZED (
            SELECT {", ".join(_ISSUE_KEY)}, count(*) AS row_count, {named(_SUMS)}
            FROM {SOURCE} WHERE {condition.sql} GROUP BY ALL
        ),
        page AS (SELECT * FROM issues ORDER BY {_ISSUE_ORDER} LIMIT {page.limit} OFFSET {offset})
        SELECT (SELECT count(*) FROM issues), {", ".join(_ISSUE_KEY)}, row_count, {amounts}
        FROM (SELECT 1) LEFT JOIN page ON TRUE
        ORDER BY {_ISSUE_ORDER}
    """
    rows = reader.cursor.rows(sql, condition.parameters)
    items = [dict(zip(ISSUE_FIELDS, row[1:], strict=True)) for row in rows if row[1] is not None]
    return items, rows[0][0]
