"""Pages of a list without sorting it: rows lie in the files in the order of the list.

How many rows each day contributes is known from the table's statistics or, where the list is filtered, from the
partial aggregates; where these have not all columns of the filter, rows are counted in one scan. After that only the
files of the page's own days are opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import ROW_COUNT, SumSource, sum_sources, with_first
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
class Listed:
    """The rows of a list, in its order: those of a scan of a dataset, whose ``partials`` count them."""

    cursor: Cursor
    dataset: Dataset
    scan: Scan
    partials: PartialFiles | None = None

    def counts(self) -> dict[date, int]:
        """Return how many rows of the list each day has, in the order of days."""
        if self.scan.filter.clauses:
            return self._counted(self.scan)
        counted = self._counted(self.scan.only(self.scan.partial_days))
        counts: dict[date, int] = {}
        for file in self.scan.files:
            if file.day is not None:
                whole = file.day not in self.scan.partial_days
                counts[file.day] = counts.get(file.day, 0) + file.rows if whole else counted.get(file.day, 0)
        return counts

    def _counted(self, scan: Scan) -> dict[date, int]:
        if not scan.files:
            return {}

        def _count(source: SumSource) -> dict[date, int]:
            sql = f"""SELECT date, {source.sums[ROW_COUNT]} FROM {source.relation}
                      WHERE {source.condition.sql} GROUP BY date ORDER BY date"""
            return dict(self.cursor.rows(sql, source.condition.parameters))

        return with_first(sum_sources(self.cursor, self.partials, self.dataset, scan, ()), _count)


@dataclass(frozen=True)
class _PageSlice:
    """The days a page touches, and where among their rows it begins."""

    days: list[date]
    offset: int


def read_page(listed: Listed, columns: str, page: Page) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows of one page, with ``columns`` (SQL), and how many rows the whole list has."""
    counts = listed.counts()
    total = sum(counts.values())
    if page.offset >= total:
        return [], total
    page_slice = _slice_of(counts, page)
    part = listed.scan.only(page_slice.days)
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
    return listed.cursor.rows(sql, condition.parameters), total


def read_sorted_page(listed: Listed, columns: str, page: Page, order: Order) -> tuple[list[tuple[Any, ...]], int]:
    """Return the same of a list in another order, for which every row has to be looked at."""
    total = sum(listed.counts().values())
    if page.offset >= total:
        return [], total
    condition = listed.scan.condition()
    sql = (
        f"SELECT {columns} FROM {SOURCE} WHERE {condition.sql} "
        f"ORDER BY {order.sql} LIMIT {page.limit} OFFSET {page.offset}"
    )
    return listed.cursor.rows(sql, condition.parameters), total


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
