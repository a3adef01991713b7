"""Pages of a list without sorting it: rows lie in the files in the order of the list.

How many rows each day contributes is known from the table's statistics, or counted in one scan where the list is
filtered; after that only the files of the page's own days are opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.scan import SOURCE, Condition, Scan


@dataclass(frozen=True)
class Page:
    """Which rows of a list are meant: ``limit`` of them after the first ``offset``."""

    offset: int
    limit: int


@dataclass(frozen=True)
class Order:
    """An order of a list: by a column (SQL), and where that is the same as the list is ordered anyway."""

    column: str
    descending: bool = False

    @property
    def sql(self) -> str:
        """An ORDER BY list."""
        return f"{self.column} {'DESC' if self.descending else 'ASC'}, date, file_row_number"


@dataclass(frozen=True)
class _PageSlice:
    """The days a page touches, and where among their rows it begins."""

    days: list[date]
    offset: int


def read_page(cursor: Cursor, scan: Scan, columns: str, page: Page) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows of one page, with ``columns`` (SQL), and how many rows the whole list has."""
    counts = _counts(cursor, scan)
    total = sum(counts.values())
    if page.offset >= total:
        return [], total
    page_slice = _slice_of(counts, page)
    part = scan.only(page_slice.days)
    condition = part.condition()
    offset = page_slice.offset
    if not condition.clauses:
        # Whole files: the page begins at a known row of the first one, and nothing before it needs to be read.
        first_row = Condition(
            ("(date > $first_day OR file_row_number >= $first_row)",)
            if len(page_slice.days) > 1
            else ("file_row_number BETWEEN $first_row AND $last_row",),
            {"first_row": offset}
            | (
                {"first_day": page_slice.days[0]} if len(page_slice.days) > 1 else {"last_row": offset + page.limit - 1}
            ),
        )
        condition, offset = condition & first_row, 0
    sql = (
        f"SELECT {columns} FROM {SOURCE} WHERE {condition.sql} "
        f"ORDER BY date, file_row_number LIMIT {page.limit} OFFSET {offset}"
    )
    return cursor.rows(sql, condition.parameters), total


def read_sorted_page(
    cursor: Cursor, scan: Scan, columns: str, page: Page, order: Order
) -> tuple[list[tuple[Any, ...]], int]:
    """Return the same of a list in another order, for which every row has to be looked at."""
    total = sum(_counts(cursor, scan).values())
    if page.offset >= total:
        return [], total
    condition = scan.condition()
    sql = (
        f"SELECT {columns} FROM {SOURCE} WHERE {condition.sql} "
        f"ORDER BY {order.sql} LIMIT {page.limit} OFFSET {page.offset}"
    )
    return cursor.rows(sql, condition.parameters), total


def _counts(cursor: Cursor, scan: Scan) -> dict[date, int]:
    """Return how many rows of the list each day has, in the order of days."""
    if scan.filter.clauses:
        return _counted(cursor, scan)
    counted = _counted(cursor, scan.only(scan.partial_days))
    counts: dict[date, int] = {}
    for file in scan.files:
        if file.day is not None:
            whole = file.day not in scan.partial_days
            counts[file.day] = counts.get(file.day, 0) + file.rows if whole else counted.get(file.day, 0)
    return counts


def _counted(cursor: Cursor, scan: Scan) -> dict[date, int]:
    if not scan.files:
        return {}
    condition = scan.condition()
    sql = f"SELECT date, count(*) FROM {SOURCE} WHERE {condition.sql} GROUP BY date ORDER BY date"
    return dict(cursor.rows(sql, condition.parameters))


def _slice_of(counts: dict[date, int], page: Page) -> _PageSlice:
    days: list[date] = []
    before = start = 0
    for day, rows in counts.items():
        if before >= page.offset + page.limit:
            break
        if rows and before + rows > page.offset:
            if not days:
                start = page.offset - before
            days.append(day)
        before += rows
    return _PageSlice(days, start)
