"""Sums per UTC day, and rows as they are stored, of chargebacks and billing lines: what emitters tell of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from chargeback.model.chargeback import CHARGEBACKS
from chargeback.model.days import DayRange, InstantRange, start_of_day
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.scan import SOURCE, Scan

#: The column that is summed, by table.
AMOUNTS: Final = {"chargebacks": "amount", "billing": "total_cost"}

#: What grows with the organisation. Where sums are put together, these lose their value; all others are few.
IDS: Final = ("identity_id", "resource_id", "environment_id")

_BATCH = 10_000


def instants_of(days: DayRange) -> InstantRange:
    """All instants of UTC days."""
    return InstantRange(start_of_day(days.start), start_of_day(days.end))


def stored_rows(cursor: Cursor, facts: FactTables, days: DayRange) -> Iterator[pa.RecordBatch]:
    """The chargeback rows of ``days`` in the order of every list, in schema ``CHARGEBACKS``.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(CHARGEBACKS_TABLE), instants_of(days))
    if scan.files:
        columns = ", ".join(CHARGEBACKS.names)
        for batch in cursor.batches(f"SELECT {columns} FROM {SOURCE}", scan.condition().parameters, size=_BATCH):
            yield pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in CHARGEBACKS], schema=CHARGEBACKS
            )


def daily_sums(
    cursor: Cursor,
    facts: FactTables,
    table: str,
    days: DayRange,
    by: Sequence[str],
    most: tuple[int, str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Sums of a table (a key of :data:`AMOUNTS`) per day and text columns ``by``, ordered by these, then by day.

    Batches have the columns ``date``, ``by`` and ``amount``; what has no value is an empty text. ``most`` is (how many
    sums of a day may stand by themselves, what the :data:`IDS` of the others become): those of the largest amounts do.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(table), instants_of(days))
    if not scan.files:
        return
    keys = ["date", *by]
    texts = ["date", *(f"coalesce({name}, '') AS {name}" for name in by)]
    grouped = f"SELECT {', '.join(texts)}, sum({AMOUNTS[table]}) AS amount FROM {SOURCE} GROUP BY ALL"
    parameters = dict(scan.condition().parameters)
    if most is not None and set(by) & set(IDS):
        parameters |= {"most": most[0], "other": most[1]}
        rank = f"row_number() OVER (PARTITION BY date ORDER BY abs(amount) DESC, {', '.join(by)})"
        merged = ["date", *(f"CASE WHEN rank > $most THEN $other ELSE {n} END AS {n}" if n in IDS else n for n in by)]
        grouped = (
            f"SELECT {', '.join(merged)}, sum(amount) AS amount "
            f"FROM (SELECT *, {rank} AS rank FROM ({grouped})) GROUP BY ALL"
        )
    sql = f"SELECT {', '.join(keys)}, amount FROM ({grouped}) ORDER BY {', '.join([*by, 'date'])}"
    yield from cursor.batches(sql, parameters, size=_BATCH)


def is_finer_than(cursor: Cursor, facts: FactTables, days: DayRange, unit: str) -> bool:
    """Whether a chargeback row of ``days`` lies within a ``unit`` (day, week, month) and not at its start."""
    scan = Scan.of(facts.snapshot(CHARGEBACKS_TABLE), instants_of(days))
    if not scan.files:
        return False
    sql = f"SELECT coalesce(bool_or(timestamp <> date_trunc('{unit}', timestamp)), FALSE) FROM {SOURCE}"
    return bool(cursor.rows(sql, scan.condition().parameters)[0][0])
