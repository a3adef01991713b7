"""The new rows of a day: written to a file, and summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.model.money import exact_sum
from chargeback.store.facts.tables import FactTables, PreparedDay
from chargeback.store.queries.as_of import RevisedDataset

# Arrow's sums keep the type of the summed values and overflow silently.
_WIDE: Final = pa.decimal256(76, 12)


@dataclass(frozen=True, slots=True)
class NewRows:
    """The new rows of a day: their file, their number, their sum, and the sum of each payer."""

    prepared: PreparedDay
    rows: int
    total: Decimal
    sums: Mapping[tuple[str, ...], Decimal]


def prepare_rows(facts: FactTables, dataset: RevisedDataset, day: date, rows: pa.Table) -> NewRows:
    """Write the file of a day's new rows, which no reader sees before it is committed.

    Raises:
        StorageError: it cannot be written.
    """
    prepared = facts.prepare_day(dataset.table, day, rows)
    return NewRows(prepared, rows.num_rows, sum_of(rows), sums_by(rows, dataset.payer))


def sum_of(rows: pa.Table) -> Decimal:
    """Return the exact sum of the amounts."""
    return exact_sum([pc.sum(rows["amount"].cast(_WIDE), min_count=0).as_py()])


def sums_by(rows: pa.Table, payer: Sequence[str]) -> dict[tuple[str, ...], Decimal]:
    """Return the exact sum of the amounts of each payer."""
    texts = {name: rows[name].cast(pa.string()) for name in payer}
    wide = pa.table({**texts, "amount": rows["amount"].cast(_WIDE)})
    sums = wide.group_by(list(payer)).aggregate([("amount", "sum")])
    keys = zip(*(sums[name].to_pylist() for name in payer), strict=True)
    return dict(zip(keys, sums["amount_sum"].to_pylist(), strict=True))
