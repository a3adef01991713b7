"""The state of the commitments of contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final, Self

from pydantic import Field

from chargeback.config.contracts import ContractSettings
from chargeback.model.cents import rounded_cents
from chargeback.model.contracts import (
    SPEND,
    Commitment,
    CommitmentKind,
    Counts,
    DayCost,
    Drawing,
    Drawn,
    Interval,
    draw,
    outlook,
    places_of,
)
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import from_units
from chargeback.reports.answers import Exact, ResponseModel, Sum
from chargeback.store.control.days import DayState
from chargeback.store.queries.datasets import BILLING_LINES
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection

_CENT: Final = Decimal("0.01")


class ExhaustedOn(ResponseModel):
    """The estimated day on which a commitment is used up, from the amounts drawn in the weeks before. Null: not before
    the end of the interval."""

    p10: date | None = Field(description="If all weeks are like the highest of ten.")
    p50: date | None
    p90: date | None = Field(description="If all weeks are like the lowest of ten.")


class CommitmentInterval(ResponseModel):
    """An interval of a commitment, in the currency or, for a quantity, in the unit of the commitment."""

    start_date: date
    end_date: date
    committed: Exact = Field(
        description="The committed amount, including the rest of the previous interval if it is carried over."
    )
    drawn: Exact
    remaining: Exact
    applied: Sum = Field(description="The costs that were applied to it.")
    overage: Sum = Field(description="The costs to which it applies but that exceed all commitments.")
    pace: float | None = Field(
        description="The drawn amount, divided by the part of the commitment for the days that count: 1 is on track. "
        "Null if no day counts."
    )
    exhausted_on: ExhaustedOn | None = Field(description="Null if the interval is over, or if too few days are known.")
    shortfall: Exact | None = Field(
        description="The amount that is not drawn at its end: exact when it is over, before that an estimate in cents; "
        "null if too few days are known."
    )
    is_over: bool
    counted_days: int = Field(description="Days that are calculated from their present bill.")
    pending_days: int = Field(description="Past days of the interval that do not count yet.")


class CommitmentItem(ResponseModel):
    """A commitment, and its intervals up to the present one."""

    id: str
    kind: CommitmentKind
    unit: str | None = Field(description="The unit of a commitment of usage, as on the bill.")
    interval: Interval
    counts: Counts
    rollover: bool
    priority: int
    applies_to: dict[str, list[str]]
    intervals: list[CommitmentInterval]


class ContractItem(ResponseModel):
    """A contract. The bill of its days that count is applied to its commitments, to those of other contracts, or to
    none."""

    id: str = Field(examples=["confluent-2026"])
    issuer: str
    currency: str
    start_date: date
    end_date: date
    data_through: date | None = Field(description="The last of its days that counts.")
    billed: Sum
    applied: Sum
    applied_to_others: Sum
    not_applied: Sum
    commitments: list[CommitmentItem]


@dataclass(frozen=True)
class Standing:
    """The state of all contracts of a tenant on a day: the amounts drawn on the days that count."""

    drawing: Drawing
    counted: Sequence[date]
    today: date

    @classmethod
    def of(
        cls, reader: TenantReader, states: Mapping[date, DayState], contracts: Sequence[ContractSettings], today: date
    ) -> Self:
        """Return the state of all contracts.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        counted = sorted(day for day, state in states.items() if state.chargebacks.is_current)
        commitments = [each for contract in contracts for each in contract.committed]
        return cls(draw(commitments, costs_of(reader, commitments, counted)), counted, today)

    def item(self, contract: ContractSettings, currency: str) -> ContractItem:
        """Return the state of a contract."""
        shares = self.drawing.shares[contract.id]
        return ContractItem(
            id=contract.id,
            issuer=contract.issuer,
            currency=currency,
            start_date=contract.start_date,
            end_date=contract.end_date,
            data_through=max((day for day in self.counted if day in contract.days), default=None),
            billed=from_units(shares.billed),
            applied=from_units(shares.applied),
            applied_to_others=from_units(shares.to_others),
            not_applied=from_units(shares.not_applied),
            commitments=[self._commitment(each, currency) for each in contract.committed],
        )

    def _commitment(self, commitment: Commitment, currency: str) -> CommitmentItem:
        drawn = [] if self.today < commitment.days.start else self.drawing.of(commitment, self.today)
        return CommitmentItem.like(
            commitment,
            applies_to={name: sorted(values) for name, values in sorted(commitment.applies_to.items())},
            intervals=[self._interval(commitment, drawn[: number + 1], currency) for number in range(len(drawn))],
        )

    def _interval(self, commitment: Commitment, drawn: Sequence[Drawn], currency: str) -> CommitmentInterval:
        now = drawn[-1]
        counted = sum(day in now.days for day in self.counted)
        due = [day for day in now.days if day < self.today]
        is_over = self.today >= now.days.end and counted == len(now.days)
        expected = None if is_over else outlook(commitment, drawn, self.counted)
        shortfall = None
        if is_over:
            shortfall = from_units(now.remaining)
        elif expected is not None:
            estimate = from_units(expected.shortfall)
            shortfall = rounded_cents(estimate, currency) if commitment.kind == SPEND else estimate.quantize(_CENT)
        part = now.committed * counted / len(now.days)
        return CommitmentInterval(
            start_date=now.days.start,
            end_date=now.days.end - ONE_DAY,
            committed=from_units(now.committed),
            drawn=from_units(now.drawn),
            remaining=from_units(now.remaining),
            applied=from_units(now.applied),
            overage=from_units(now.overage),
            pace=round(now.drawn / part, 4) if part else None,
            exhausted_on=None
            if expected is None
            else ExhaustedOn(p10=expected.early, p50=expected.middle, p90=expected.late),
            shortfall=shortfall,
            is_over=is_over,
            counted_days=counted,
            pending_days=len(due) - sum(day in now.days and day < self.today for day in self.counted),
        )


def costs_of(reader: TenantReader, commitments: Sequence[Commitment], counted: Sequence[date]) -> list[DayCost]:
    """Return the bill of the days that count, by the columns that distinguish the commitments.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    wanted = [day for day in counted if any(day in each.days for each in commitments)]
    if not wanted:
        return []
    billed = reader.scan(BILLING_LINES, Selection.of_days(DayRange.spanning(wanted)))
    if not billed.files:
        return []
    columns, condition = list(places_of(commitments)), billed.condition()
    names = "".join(f"{name}, " for name in columns)
    rows = reader.cursor.rows(
        f"""SELECT date, unit, {names}
                   coalesce(sum(total_cost) FILTER (total_cost > 0), 0)::DECIMAL(38, 12),
                   coalesce(sum(total_cost) FILTER (total_cost < 0), 0)::DECIMAL(38, 12),
                   coalesce(sum(quantity) FILTER (total_cost > 0), 0)::DECIMAL(38, 12)
            FROM {SOURCE} WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )
    days = set(wanted)
    return [
        DayCost(day, dict(zip(columns, places, strict=True)), unit, charges, credit, quantity)
        for day, unit, *places, charges, credit, quantity in rows
        if day in days
    ]
