"""The rows of one billing line, as far as a reader sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from chargeback.model.days import DayRange
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection, equal


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
