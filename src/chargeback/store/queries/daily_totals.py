"""Sums per UTC day: what emitters write, with rows as they are stored, and what is remembered of whole days."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa

from chargeback.model.days import DayRange
from chargeback.model.money import PRECISION, SHARED_PLACES
from chargeback.store.facts.tables import SCHEMAS
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import decimal_of_parts
from chargeback.store.queries.keys import ByColumn, ByDay, Key
from chargeback.store.queries.question import TOTAL, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import FINE, exact
from chargeback.store.queries.sums import daily_amounts

_BATCH: Final = 10_000
_EXACT: Final = pa.decimal256(PRECISION + SHARED_PLACES, SHARED_PLACES)


def stored_rows(reader: TenantReader, dataset: Dataset, days: DayRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``days`` in the order of every list, in the schema of the dataset's table.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    schema = SCHEMAS[dataset.table]
    scan = reader.scan(dataset, Selection.of_days(days))
    if scan.files:
        condition = scan.condition()
        sql = f"SELECT {', '.join(schema.names)} FROM {SOURCE} WHERE {condition.sql}"
        for batch in reader.cursor.batches(sql, condition.parameters, size=_BATCH):
            yield pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in schema], schema=schema
            )


def daily_totals(
    reader: TenantReader, dataset: Dataset, days: DayRange, by: Sequence[str], most: tuple[int, str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the sums of a dataset per day and text columns ``by``, ordered by these, then by day.

    Batches have the columns ``date``, ``by`` and ``amount``, with all its digits; a missing value is an empty text.
    ``most`` is (how many sums of a day keep their ids, what the ``ids`` of the dataset become in the others): those of
    the largest amounts keep them.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    # Of named days the rows themselves are read: kept sums may be deleted while this is under way.
    keys: tuple[Key, ...] = (ByDay(), *map(ByColumn, by))
    sums = reader.sums(Sums(dataset, Selection.of_days(days), keys, days=set(days)))
    fine = f"{TOTAL}{FINE}" if sums.is_fine else "0::HUGEINT"
    texts = ["date", *(f"coalesce(d{number}, '') AS {name}" for number, name in enumerate(by))]
    parameters: dict[str, object] = {}
    grouped = f"SELECT {', '.join(texts)}, sum({TOTAL}) AS amount, sum({fine}) AS fine FROM sums GROUP BY ALL"
    ids = dataset.ids
    if most is not None and set(by) & set(ids):
        parameters = {"most": most[0], "other": most[1]}
        rank = f"row_number() OVER (PARTITION BY date ORDER BY abs(amount) DESC, {', '.join(by)})"
        merged = ["date", *(f"CASE WHEN rank > $most THEN $other ELSE {n} END AS {n}" if n in ids else n for n in by)]
        grouped = (
            f"SELECT {', '.join(merged)}, sum(amount) AS amount, sum(fine) AS fine "
            f"FROM (SELECT *, {rank} AS rank FROM ({grouped})) GROUP BY ALL"
        )
    amount = exact("amount", "fine") if sums.is_fine else "amount"
    sql = f"SELECT {', '.join(['date', *by])}, {amount} AS amount FROM ({grouped}) ORDER BY {', '.join([*by, 'date'])}"
    for batch in sums.batches(sql, parameters, _BATCH):
        yield _with_decimals(batch) if sums.is_fine else batch


def _with_decimals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return sums that have further digits as decimals."""
    amounts = pa.array([decimal_of_parts(parts) for parts in batch.column("amount").to_pylist()], _EXACT)
    return batch.set_column(batch.num_columns - 1, "amount", amounts)


def is_finer_than(reader: TenantReader, dataset: Dataset, days: DayRange, unit: str) -> bool:
    """Return whether a row of ``days`` is inside a ``unit`` (day, week, month) and not at its start."""
    scan = reader.scan(dataset, Selection.of_days(days))
    if not scan.files:
        return False
    condition = scan.condition()
    sql = (
        f"SELECT coalesce(bool_or(timestamp <> date_trunc('{unit}', timestamp)), FALSE) "
        f"FROM {SOURCE} WHERE {condition.sql}"
    )
    return bool(reader.cursor.rows(sql, condition.parameters)[0][0])


#: How many days have their sums cached: some megabytes.
ROOM: Final = 20_000

_Files = tuple[str, ...]


class DayTotals:
    """The sums of the most recently queried days, by the paths of their files: of whole days, for any scope of a
    reader. Safe for use by several threads."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._sums: OrderedDict[_Files, Decimal] = OrderedDict()

    def load(self, reader: TenantReader, dataset: Dataset, days: DayRange) -> dict[date, Decimal]:
        """Return the sum of each UTC day of a range that has rows; only what is not remembered is read.

        Raises:
            HistoryGone: the rows of an earlier instant are no longer kept.
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        reader = reader.unscoped()
        files = _files_by_day(reader, dataset, days)
        known = self._known(files)
        missing = files.keys() - known.keys()
        if missing:
            amounts = daily_amounts(reader, dataset, Selection.of_days(DayRange.spanning(missing)))
            read = {day: amounts[day] for day in missing}
            self._keep({files[day]: amount for day, amount in read.items()})
            known |= read
        return known

    def _known(self, files: dict[date, _Files]) -> dict[date, Decimal]:
        with self._lock:
            found = {day: self._sums[paths] for day, paths in files.items() if paths in self._sums}
            for day in found:
                self._sums.move_to_end(files[day])
        return found

    def _keep(self, sums: dict[_Files, Decimal]) -> None:
        with self._lock:
            self._sums.update(sums)
            while len(self._sums) > self._room:
                self._sums.popitem(last=False)


def _files_by_day(reader: TenantReader, dataset: Dataset, days: DayRange) -> dict[date, _Files]:
    found: dict[date, list[str]] = {}
    for file in reader.snapshot(dataset.table).within(days):
        if file.day is not None and file.rows:
            found.setdefault(file.day, []).append(file.path)
    return {day: tuple(sorted(paths)) for day, paths in found.items()}
