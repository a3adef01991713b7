"""What is specific to chargebacks: dimensions, rows of a line, and what was not allocated as intended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

from chargeback.model.chargeback import ALLOCATION_ISSUES, DIMENSION_COLUMNS
from chargeback.model.days import DayRange
from chargeback.store.control.tags import IDENTITY, RESOURCE
from chargeback.store.facts.tables import DIMENSIONS_TABLE
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.keys import ByColumn, keys_of
from chargeback.store.queries.paging import Page
from chargeback.store.queries.partials import DISTINCT_ROWS, ROW_COUNT
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE, Condition
from chargeback.store.queries.selection import ColumnFilter, Selection, equal
from chargeback.store.queries.sql_format import named

_ISSUE_KEY: Final = ("ecosystem", "resource_id", "product_type", "identity_id", "allocation_detail")
_ISSUE_ORDER: Final = "resource_id, product_type, identity_id, allocation_detail, ecosystem"
#: The amounts of an issue, by the names of the aggregate's.
_ISSUE_AMOUNTS: Final = {"usage_cost": "usage_amount", "shared_cost": "shared_amount", "total_cost": "total_amount"}
_ISSUE_FIELDS: Final = (*_ISSUE_KEY, "row_count", *_ISSUE_AMOUNTS)
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
    if not reader.sees_everything and not _is_visible(reader, dimension_id):
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
    issues = ColumnFilter("allocation_detail", frozenset(ALLOCATION_ISSUES))
    selection = replace(selection, columns=(*selection.columns, issues))
    of = (*CHARGEBACKS.shown_sums, DISTINCT_ROWS)
    sums = reader.sums(Sums(CHARGEBACKS, selection, tuple(map(ByColumn, _ISSUE_KEY)), of))
    names = {f"d{number}": name for number, name in enumerate(_ISSUE_KEY)}
    shown = {name: sums.amount(*CHARGEBACKS.amounts[of_sums]) for name, of_sums in _ISSUE_AMOUNTS.items()}
    rows = sums.rows(
        f"""SELECT * FROM (
                WITH issues AS MATERIALIZED (SELECT *, {named({name: d for d, name in names.items()})} FROM sums),
                     page AS (SELECT *, {named(shown)} FROM issues ORDER BY {_ISSUE_ORDER}
                              LIMIT {page.limit} OFFSET {min(page.offset, _MAX_ISSUES)})
                SELECT (SELECT count(*) FROM issues) AS issues, {", ".join((*_ISSUE_KEY, DISTINCT_ROWS, *shown))}
                FROM (SELECT 1) LEFT JOIN page ON TRUE)
            ORDER BY {_ISSUE_ORDER}"""
    )
    items = [dict(zip(_ISSUE_FIELDS, row[1:], strict=True)) for row in rows if row[1] is not None]
    return items, rows[0][0]


def charged_entities(reader: TenantReader, selection: Selection) -> list[tuple[str, str]]:
    """Return (entity type, id) of every resource and identity in the selected chargeback rows.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    columns = {IDENTITY: "identity_id", RESOURCE: "resource_id"}
    sums = reader.sums_of_each(Sums(CHARGEBACKS, selection, keys_of(CHARGEBACKS, [*columns.values()]), (ROW_COUNT,)))
    return [
        (entity_type, entity_id)
        for entity_type, (relation, column) in zip(columns, sums, strict=True)
        for (entity_id,) in relation.rows(f"SELECT DISTINCT {column} FROM sums ORDER BY ALL")
    ]


def selection_of_line(day: date, line_id: str) -> Selection:
    """Return the selection of the rows of a line on a UTC day."""
    return Selection(Selection.of_days(DayRange.of_day(day)).window, equal(line_id=line_id))


def rows_of_line(
    reader: TenantReader, dataset: Dataset, day: date, line_id: str, columns: Sequence[str]
) -> set[tuple[Any, ...]]:
    """Return some columns of the visible rows of a line on a UTC day.

    Raises:
        HistoryGone: the rows of an earlier instant are no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    scan = reader.scan(dataset, selection_of_line(day, line_id))
    if not scan.files:
        return set()
    condition = scan.condition()
    sql = f"SELECT DISTINCT {', '.join(columns)} FROM {SOURCE} WHERE {condition.sql}"
    return set(reader.cursor.rows(sql, condition.parameters))
