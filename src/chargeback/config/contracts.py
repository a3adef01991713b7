"""Contracts with a provider, as the configuration has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from chargeback.config.closing import Grouping
from chargeback.model.contracts import SPEND, Commitment, CommitmentKind, Counts, Interval
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.settings import ExactDecimal, Settings, Whole

_Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
_Place = Literal["product_category", "product_type", "resource_id", "environment_id"]
_Values = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class ShortfallSettings(Settings):
    """Who pays for the remainder of an interval: by a grouping of statements, one ``value``, or all of them by what
    they were charged in the interval."""

    by: Grouping
    value: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class CommitmentSettings(Settings):
    """What is committed to in each interval: an ``amount`` of money, or a ``quantity`` in a ``unit`` of the bill."""

    id: _Id
    kind: CommitmentKind = SPEND
    amount: Annotated[ExactDecimal, Field(gt=0)] | None = None
    quantity: Annotated[ExactDecimal, Field(gt=0)] | None = None
    unit: Annotated[str, Field(min_length=1)] | None = None
    interval: Interval
    applies_to: dict[_Place, _Values] = Field(default_factory=dict)
    counts: Counts = "billed"
    rollover: bool = False
    priority: Annotated[Whole, Field(ge=1, le=1000)] = 100
    shortfall: ShortfallSettings | None = None

    @model_validator(mode="after")
    def _has_its_size(self) -> Self:
        wanted, other = ("amount", "quantity") if self.kind == SPEND else ("quantity", "amount")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"a commitment of {self.kind} has {wanted}, and no {other}")
        if (self.kind == SPEND) != (self.unit is None):
            raise ValueError("the unit belongs to a commitment of usage: the one of its billing lines, such as GB")
        if self.shortfall is not None and (self.kind != SPEND or self.rollover):
            raise ValueError("a shortfall is posted of commitments of spend that are not rolled over")
        return self

    @property
    def size(self) -> Decimal:
        """How much is committed to."""
        return self.amount or self.quantity or Decimal(0)  # one of the two


class ContractSettings(Settings):
    """A contract from ``start_date`` to ``end_date``, both included, in the currency of the bill."""

    id: _Id
    issuer: Annotated[str, Field(min_length=1, max_length=255)]
    start_date: date
    end_date: date
    commitments: Annotated[list[CommitmentSettings], Field(min_length=1, max_length=50)]

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.end_date < self.start_date:
            raise ValueError("end_date should not be before start_date")
        check_distinct("commitments", [each.id for each in self.commitments])
        return self

    @property
    def days(self) -> DayRange:
        """Its UTC days."""
        return DayRange(self.start_date, self.end_date + ONE_DAY)

    @property
    def committed(self) -> list[Commitment]:
        """What it commits to."""
        return [
            Commitment(
                contract=self.id,
                id=each.id,
                kind=each.kind,
                size=each.size,
                unit=each.unit,
                interval=each.interval,
                days=self.days,
                counts=each.counts,
                rollover=each.rollover,
                priority=each.priority,
                applies_to={name: frozenset(values) for name, values in each.applies_to.items()},
            )
            for each in self.commitments
        ]


def check_distinct(what: str, ids: Sequence[str]) -> None:
    """Check that no id is there twice.

    Raises:
        ValueError: one is.
    """
    twice = sorted({each for each in ids if ids.count(each) > 1})
    if twice:
        raise ValueError(f"two {what} have the id {twice[0]}")
