"""Sums of selected rows by columns and tags, as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from chargeback.store.queries.aggregate import columns_of, group_keys, joins_of
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.partials import Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: The values of the columns that were grouped by.
Key = tuple[str | None, ...]


def sums_by(reader: TenantReader, dataset: Dataset, selection: Selection, by: Sequence[str]) -> dict[Key, Decimal]:
    """Return the sum of the selected rows for each combination of the values of ``by``: columns or ``tag:<key>``.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    return {tuple(row[:-1]): row[-1] for row in _sums(reader, dataset, selection, by, "")}


def daily_sums_by(
    reader: TenantReader, dataset: Dataset, selection: Selection, by: Sequence[str]
) -> dict[tuple[date, Key], Decimal]:
    """Return the same for each UTC day."""
    return {(row[0], tuple(row[1:-1])): row[-1] for row in _sums(reader, dataset, selection, by, "date, ")}


def _sums(
    reader: TenantReader, dataset: Dataset, selection: Selection, by: Sequence[str], before: str
) -> list[tuple[Any, ...]]:
    if not reader.scan(dataset, selection).files:
        return []
    grouped = group_keys(reader.cursor, by, dataset, reader.tags, reader.clusters)
    keys, joins = f"{before}{columns_of(grouped)}", joins_of(grouped)

    def _query(source: Addends) -> list[tuple[Any, ...]]:
        return reader.cursor.rows(
            f"""SELECT {keys}, {source.sums["total"]} FROM {source.relation} AS facts {joins}
                WHERE {source.condition.sql} GROUP BY ALL""",
            source.condition.parameters,
        )

    return reader.add_up(dataset, selection, f"{keys} {joins}", _query)
