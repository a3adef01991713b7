"""Sums of selected rows by columns and tags, as Python values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from chargeback.store.queries.aggregate import columns_of, joins_of
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.partials import Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: The values of the columns that were grouped by.
Key = tuple[str | None, ...]


def sums_by(reader: TenantReader, dataset: Dataset, selection: Selection, by: Sequence[str]) -> dict[Key, Decimal]:
    """Return the sum of the selected rows for each combination of the values of ``by``: columns or ``tag:<key>``.

    Raises:
        HistoryGone: the reader sees an earlier instant of which a day is no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    if reader.days_of(dataset, selection) is None:
        return {}
    return {tuple(row[:-1]): row[-1] for row in _rows(reader, dataset, selection, by)}


def daily_sums_by(
    reader: TenantReader, dataset: Dataset, selection: Selection, by: Sequence[str], days: Collection[date]
) -> dict[tuple[date, Key], Decimal]:
    """Return the same for each of some UTC days. Only the files of these days are read.

    Raises:
        HistoryGone: the reader sees an earlier instant of which a day is no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    within = reader.days_of(dataset, selection)
    if within is None or not any(file.day in days for file in reader.snapshot(dataset.table).within(within)):
        return {}
    rows = _rows(reader, dataset, selection, by, "date, ", days)
    return {(row[0], tuple(row[1:-1])): row[-1] for row in rows}


def _rows(
    reader: TenantReader,
    dataset: Dataset,
    selection: Selection,
    by: Sequence[str],
    first: str = "",
    days: Collection[date] | None = None,
) -> list[tuple[Any, ...]]:
    """Return the values of ``first`` and of ``by``, each with its sum."""
    grouped = reader.group_keys(dataset, by)
    keys, joins = f"{first}{columns_of(grouped)}", joins_of(grouped)

    def _query(source: Addends) -> list[tuple[Any, ...]]:
        return reader.cursor.rows(
            f"""SELECT {keys}, {source.amount()} FROM {source.relation} AS facts {joins}
                WHERE {source.condition.sql} GROUP BY ALL""",
            source.condition.parameters,
        )

    return reader.add_up(dataset, selection, f"{keys} {joins}", _query, days=days)
