"""Sums of selected rows by columns and tags, as Python values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from decimal import Decimal

from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.keys import ByDay, keys_of
from chargeback.store.queries.question import Sums
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
    sums = reader.sums(Sums(dataset, selection, keys_of(dataset, by)))
    columns = ", ".join([*(f"d{number}" for number in range(len(by))), sums.amount()])
    return {tuple(row[:-1]): row[-1] for row in sums.rows(f"SELECT {columns} FROM sums")}


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
    sums = reader.sums(Sums(dataset, selection, (ByDay(), *keys_of(dataset, by)), days=days))
    columns = ", ".join(["date", *(f"d{number}" for number in range(len(by))), sums.amount()])
    return {(row[0], tuple(row[1:-1])): row[-1] for row in sums.rows(f"SELECT {columns} FROM sums")}


def daily_amounts(reader: TenantReader, dataset: Dataset, selection: Selection) -> dict[date, Decimal]:
    """Return the amount of the selected rows of each UTC day that has any.

    Raises:
        HistoryGone: the reader sees an earlier instant of which a day is no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    sums = reader.sums(Sums(dataset, selection, (ByDay(),)))
    return dict(sums.rows(f"SELECT date, {sums.amount()} FROM sums"))
