"""The parts of billing lines that are applied to commitments of contracts: the column ``ContractApplied`` of FOCUS
1.4."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Self

import pyarrow as pa

from chargeback.config.contracts import ContractSettings
from chargeback.model.contracts import SPEND, Applied, Commitment, Drawing, draw, places_of
from chargeback.model.days import DayRange
from chargeback.model.focus import focus_unit
from chargeback.model.money import to_units
from chargeback.reports.contracts import costs_of
from chargeback.store.control.days import DayState
from chargeback.store.queries.datasets import BILLING_LINES
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

CONTRACT_APPLIED: Final = "ContractApplied"
#: The parts of lines that were applied to commitments: money or a quantity, in units of 10⁻¹².
_APPLIED: Final = pa.schema(
    [
        ("date", pa.date32()),
        ("line_id", pa.string()),
        (
            "elements",
            pa.list_(
                pa.struct(
                    [
                        ("contract", pa.string()),
                        ("commitment", pa.string()),
                        ("units", pa.decimal128(38, 0)),
                        ("unit", pa.string()),
                    ]
                )
            ),
        ),
    ]
)

# Without an array of Python objects, for which pyarrow would import pandas at the start.
NOTHING_APPLIED: Final = pa.Table.from_batches([], _APPLIED)


@dataclass(frozen=True)
class AppliedToLines:
    """The parts of the lines of some days that were applied to commitments. For each place, its charges, and its
    credits, are applied in the order of the line ids, until nothing is left."""

    reader: TenantReader
    drawing: Drawing
    columns: Sequence[str]

    @classmethod
    def of(
        cls,
        reader: TenantReader,
        states: Mapping[date, DayState],
        contracts: Sequence[ContractSettings],
        days: Collection[date],
    ) -> Self:
        """Return the applied parts of some of the days that a reader sees.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        commitments = [each for contract in contracts for each in contract.committed]
        counted = sorted(day for day, state in states.items() if state.chargebacks.is_current)
        drawing = draw(commitments, costs_of(reader, commitments, counted), frozenset(days))
        return cls(reader, drawing, list(places_of(commitments)))

    def table(self, days: DayRange) -> pa.Table:
        """Return the lines of some days that have parts applied to commitments.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        left = {key: list(each) for key, each in self.drawing.applied.items() if key[0][0] in days}
        rows: list[dict[str, Any]] = []
        for day, unit, line_id, cost, *place in self._lines(days):
            key = (day, tuple(sorted(zip(self.columns, place, strict=True))), unit or "")
            found = list(_taken(left.get((key, cost < 0), []), abs(to_units(cost)), 1 if cost > 0 else -1))
            if found:
                rows.append({"date": day, "line_id": line_id, "elements": found})
        return pa.Table.from_pylist(rows, _APPLIED)

    def _lines(self, days: DayRange) -> Iterator[tuple[Any, ...]]:
        billed = self.reader.parts(BILLING_LINES, Selection.of_days(days))
        if billed is None:
            return
        relation, condition = billed
        names = "".join(f", {name}" for name in self.columns)
        yield from self.reader.cursor.rows(
            f"""SELECT date, unit, line_id, total_cost{names} FROM {relation}
                WHERE {condition.sql} AND total_cost <> 0 ORDER BY date, line_id""",
            condition.parameters,
        )


def _taken(left: list[Applied], money: int, sign: int) -> Iterator[dict[str, Any]]:
    """Take the cost of a line from the rest of a place, and yield its elements."""
    while money and left:
        first = left[0]
        whole = abs(first.money)
        part = min(whole, money)
        quantity = first.quantity * part // whole if whole else first.quantity
        is_spend = first.commitment.kind == SPEND
        units = sign * part if is_spend else quantity
        if units:
            yield {
                "contract": first.commitment.contract,
                "commitment": commitment_id(first.commitment),
                "units": units,
                "unit": None if is_spend else focus_unit(first.commitment.unit),
            }
        money -= part
        if part == whole:
            left.pop(0)
        else:
            left[0] = Applied(first.commitment, sign * (whole - part), first.quantity - quantity)


def commitment_id(commitment: Commitment) -> str:
    """Return the id of a commitment among those of all contracts."""
    return f"{commitment.contract}/{commitment.id}"
