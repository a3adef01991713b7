"""How the months of a tenant are closed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from chargeback.settings import ExactDecimal, Settings

#: By what statements can be made.
Grouping = Annotated[str, StringConstraints(pattern=r"^(identity_id|(tag|category):[A-Za-z0-9][A-Za-z0-9_.:-]{0,63})$")]


class ClosingSettings(Settings):
    """By what the statements of closed months are kept, who closes them, and from which share of costs without an owner
    on (percent) a preview warns."""

    by: list[Grouping] = Field(default_factory=list, max_length=10)
    approval: Literal["one_person", "two_people"] = "one_person"
    warn_percent: Annotated[ExactDecimal, Field(ge=0, le=100)] = Decimal(5)


@dataclass(frozen=True, slots=True)
class ClosingProfile:
    """The same of one tenant, with the days that decide what can still change: how many days after which a bill is
    final, and how long days are gathered again and kept."""

    by: tuple[str, ...] = ("category:cost_center",)
    needs_two: bool = False
    warn_percent: Decimal = Decimal(5)
    cutoff_days: int = 5
    lookback_days: int = 200
    retention_days: int = 250
