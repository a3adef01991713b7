"""Budgets: the allowed monthly cost of the rows of a scope, and the thresholds at which notifications are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, Self

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.money import from_units, to_units

#: What a threshold examines: the charges until now, the expected cost of the month, or the charges until now compared
#: with the same days of the budget.
ThresholdKind = Literal["actual", "forecast", "pace"]
ACTUAL: Final = "actual"
FORECAST: Final = "forecast"
#: How far below its limit a forecast has to fall until it counts as below.
_CLEARED: Final = Fraction(97, 100)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of the budget, in percent, that is reported when it is reached."""

    on: ThresholdKind
    percent: Decimal

    @property
    def key(self) -> str:
        """A short text that is the same for equal thresholds, such as ``actual 80``."""
        return f"{self.on} {self.percent.normalize():f}"


@dataclass(frozen=True)
class Budget:
    """A budget.

    Attributes:
        scope: the conditions of the rows that count, as an access scope has them; empty for all.
        parent: the id of the budget that it belongs to.
        amounts: what single months may cost, by their ids.
        monthly: what every other month may cost.
        notify: the sinks that are notified; empty for all that get events of budgets.
        expected: entered forecasts of single months, instead of the calculated one.
    """

    id: str
    name: str
    scope: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parent: str | None = None
    amounts: Mapping[str, Decimal] = field(default_factory=dict)
    monthly: Decimal | None = None
    thresholds: tuple[Threshold, ...] = ()
    notify: tuple[str, ...] = ()
    expected: Mapping[str, Decimal] = field(default_factory=dict)

    def amount_of(self, period: AccountingPeriod) -> Decimal | None:
        """Return what a month may cost; None where nothing is said."""
        return self.amounts.get(period.id, self.monthly)

    def as_json(self) -> dict[str, Any]:
        """Return the budget without its id, as it is stored."""
        return {
            "name": self.name,
            "scope": {name: list(values) for name, values in self.scope.items()},
            "parent": self.parent,
            "amounts": _as_texts(self.amounts),
            "monthly": None if self.monthly is None else f"{self.monthly:f}",
            "thresholds": [{"on": each.on, "percent": f"{each.percent:f}"} for each in self.thresholds],
            "notify": list(self.notify),
            "expected": _as_texts(self.expected),
        }

    @classmethod
    def of(cls, budget_id: str, stored: Mapping[str, Any]) -> Self:
        """Return the budget that :meth:`as_json` has described."""
        monthly = stored["monthly"]
        return cls(
            budget_id,
            stored["name"],
            {name: tuple(values) for name, values in stored["scope"].items()},
            stored["parent"],
            {month: Decimal(amount) for month, amount in stored["amounts"].items()},
            None if monthly is None else Decimal(monthly),
            tuple(Threshold(each["on"], Decimal(each["percent"])) for each in stored["thresholds"]),
            tuple(stored.get("notify", ())),
            {month: Decimal(amount) for month, amount in stored.get("expected", {}).items()},
        )


def _as_texts(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {month: f"{amount:f}" for month, amount in sorted(amounts.items())}


@dataclass(frozen=True)
class Spending:
    """The state of a month: the budget's ``amount``, the charges ``to_date`` on the days that count, the part of the
    amount for these days, and the expected cost of the month, if there is a forecast."""

    amount: Decimal
    to_date: Decimal
    amount_to_date: Decimal
    expected: Decimal | None = None

    def crosses(self, threshold: Threshold) -> bool:
        """Return whether a threshold is reached: with nothing spent, none is."""
        value, limit = self._sides(threshold)
        return value is not None and value > 0 and value >= limit

    def is_clear_of(self, threshold: Threshold) -> bool:
        """Return whether a threshold is so far away that one that was reached counts as left."""
        value, limit = self._sides(threshold)
        return value is not None and value < limit * _CLEARED

    @property
    def ratios(self) -> tuple[float, float | None]:
        """Which part of the budget is charged, and which the forecast has; for curves, where they need not be exact."""
        whole = float(self.amount)
        return float(self.to_date) / whole, None if self.expected is None else float(self.expected) / whole

    def _sides(self, threshold: Threshold) -> tuple[Fraction | None, Fraction]:
        values = {ACTUAL: self.to_date, FORECAST: self.expected}
        value = values.get(threshold.on, self.to_date)
        whole = self.amount if threshold.on in values else self.amount_to_date
        return None if value is None else Fraction(value), Fraction(whole) * Fraction(threshold.percent) / 100


def part_of_month(amount: Decimal, days: int, of: int) -> Decimal:
    """Return what of a month's amount is for some of its days, rounded to 10⁻¹².

    >>> part_of_month(Decimal("1000"), 10, 30)
    Decimal('333.333333333333')
    """
    return from_units(round(Fraction(to_units(amount) * days, of)))
