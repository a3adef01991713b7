"""What was billed compared with what was charged for it, by day, product type or resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

import pyarrow as pa

from chargeback.model.days import DayRange
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import ByColumn, ByDay
from chargeback.store.queries.partials import ROW_COUNT
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import microseconds
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import named

PRODUCT_TYPE: Final = "product_type"
RESOURCE_ID: Final = "resource_id"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AMOUNT: Final = "DECIMAL(38, 12)"
#: What is summed: the dataset, its columns for a product type and a resource, and the sums, by their names here.
_KEYS: Final = (PRODUCT_TYPE, RESOURCE_ID)
_TABLES: Final[tuple[tuple[Dataset, tuple[str, str], Mapping[str, str]], ...]] = (
    (BILLING_LINES, _KEYS, {"billed": "total", "lines": ROW_COUNT}),
    (CHARGEBACKS, _KEYS, {"charged": "total", "unallocated": "unowned", "charged_rows": ROW_COUNT}),
    (TOPIC_ATTRIBUTIONS, (PRODUCT_TYPE, "cluster_resource_id"), {"by_topic": "total"}),
)
_SUMS: Final = {
    "billed": _AMOUNT,
    "charged": _AMOUNT,
    "unallocated": _AMOUNT,
    "by_topic": _AMOUNT,
    "lines": "BIGINT",
    "charged_rows": "BIGINT",
}
_DAYS: Final = pa.schema(
    [
        ("date", pa.date32()),
        ("is_gathered", pa.bool_()),
        ("is_calculated", pa.bool_()),
        ("is_superseded", pa.bool_()),
        ("revision", pa.int64()),
        ("calculated_at", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class CoveredDay:
    """What is known of a UTC day beside its amounts.

    Attributes:
        is_gathered: its bill was gathered.
        is_calculated: it was calculated from its present bill.
        is_superseded: whether it was calculated under other policies than the present ones; None if that is not known.
        revision: the number of its revision; None if it has none.
        calculated_at: since when it has that revision.
    """

    day: date
    is_gathered: bool = False
    is_calculated: bool = False
    is_superseded: bool | None = None
    revision: int | None = None
    calculated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReconciledSums:
    """The sums of one day, product type or resource (``value``) over some days.

    Attributes:
        billed: the sum of ``lines`` billing lines.
        charged: the sum of ``rows`` chargeback rows.
        unallocated: the part of it that is charged to no identity.
        pending: what is billed on days that are not calculated yet, or not from their present bill.
        by_topic: what is attributed to topics.
        differs: on some calculated day, another amount was charged than was billed.
        waits: a day with a bill is not calculated.
        is_calculated: a day is calculated.
        is_superseded: whether any day was calculated under other policies than the present ones; None if that is not
            known of any.
        revision: the highest number of a revision of these days.
        calculated_at: when the newest of these revisions took effect.
    """

    value: str
    billed: Decimal
    charged: Decimal
    unallocated: Decimal
    pending: Decimal
    by_topic: Decimal
    lines: int
    rows: int
    differs: bool
    waits: bool
    is_calculated: bool
    is_superseded: bool | None
    revision: int | None
    calculated_at: datetime | None


class CollectedSums:
    """The sums of the bill, the charges and the attributions of ``days``, by day, product type and resource.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    def __init__(self, reader: TenantReader, days: DayRange) -> None:
        """Sum them."""
        self._cursor = reader.cursor
        selection = Selection.of_days(days)
        self._tables = [(_collected(reader, dataset, selection, keys, sums), sums) for dataset, keys, sums in _TABLES]

    def product_types(self) -> dict[date, frozenset[str]]:
        """Return the product types that are billed on each day."""
        billed, _ = self._tables[0]
        found = self._cursor.rows(f"SELECT date, list(DISTINCT {PRODUCT_TYPE}) FROM {billed} GROUP BY date")
        return {day: frozenset(types) for day, types in found}

    def reconciled(self, days: Sequence[CoveredDay], by: str | None = None) -> list[ReconciledSums]:
        """Return the sums by product type or resource, or (``by`` is None) of each of ``days``, with or without a bill;
        ascending.

        Whether charges differ from the bill is decided by what is summed of each single day.

        Raises:
            SumTooLarge: a sum has too many digits.
        """
        covered = self._cursor.register(self._cursor.new_name("covered_days"), _days_table(days))
        value = "''" if by is None else by
        parts = " UNION ALL ".join(
            f"SELECT date, {value} AS value, {_padded(sums)} FROM {table}" for table, sums in self._tables
        )
        sums = ", ".join(f"sum({name})::{kind} AS {name}" for name, kind in _SUMS.items())
        filled = ", ".join(f"coalesce({name}, 0)::{kind} AS {name}" for name, kind in _SUMS.items())
        rows = self._cursor.rows(
            f"""WITH by_day AS (SELECT date, value, {sums} FROM ({parts}) GROUP BY ALL),
                     known AS (SELECT * REPLACE ({filled}),
                                      NOT is_calculated AND (is_gathered OR coalesce(lines, 0) > 0) AS waits
                               FROM {covered} {"LEFT JOIN" if by is None else "JOIN"} by_day USING (date))
                SELECT {"date::VARCHAR" if by is None else "value"} AS place, sum(billed)::{_AMOUNT},
                       sum(charged)::{_AMOUNT}, sum(unallocated)::{_AMOUNT},
                       coalesce(sum(billed) FILTER (waits), 0)::{_AMOUNT}, sum(by_topic)::{_AMOUNT},
                       sum(lines)::BIGINT, sum(charged_rows)::BIGINT, bool_or(is_calculated AND billed <> charged),
                       bool_or(waits), bool_or(is_calculated), bool_or(is_superseded), max(revision),
                       max(calculated_at)
                FROM known GROUP BY place ORDER BY place"""
        )
        return [ReconciledSums(*(*row[:-1], _instant(row[-1]))) for row in rows]


def _collected(
    reader: TenantReader, dataset: Dataset, selection: Selection, by: tuple[str, str], names: Mapping[str, str]
) -> str:
    """Make the table of the sums of a dataset by day, product type and resource; return its name."""
    sums = reader.sums(Sums(dataset, selection, (ByDay(), *map(ByColumn, by)), tuple(names.values())))
    columns = {PRODUCT_TYPE: "d0", RESOURCE_ID: "d1"} | {name: f"{of}::{_SUMS[name]}" for name, of in names.items()}
    return sums.table("reconciled", f"SELECT date, {named(columns)} FROM sums")


def _padded(sums: Mapping[str, str]) -> str:
    """Return the columns of a table of sums, with zeros for the sums that it does not have."""
    return ", ".join(f"{name if name in sums else f'0::{kind}'} AS {name}" for name, kind in _SUMS.items())


def _days_table(days: Sequence[CoveredDay]) -> pa.Table:
    rows = [
        {
            "date": each.day,
            "is_gathered": each.is_gathered,
            "is_calculated": each.is_calculated,
            "is_superseded": each.is_superseded,
            "revision": each.revision,
            "calculated_at": None if each.calculated_at is None else microseconds(each.calculated_at),
        }
        for each in days
    ]
    return pa.Table.from_pylist(rows, schema=_DAYS)


def _instant(since_epoch: int | None) -> datetime | None:
    return None if since_epoch is None else _EPOCH + timedelta(microseconds=since_epoch)
