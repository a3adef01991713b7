"""The status of budgets: the costs of a budget's rows in a month, compared with its amount."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Final, Literal

from pydantic import Field

from chargeback.access.scope import CATEGORY, RowScope
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import FORECAST, Budget, Spending, ThresholdKind, part_of_month
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import difference, total
from chargeback.reports.answers import Exact, Instant, ResponseModel, Sum
from chargeback.reports.forecast import forecast, history, known_days, scheduled_types
from chargeback.store.control.budgets import BudgetVersion
from chargeback.store.control.days import DayState
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.lookups import CategoryIndex, with_descendants
from chargeback.store.queries.plan import narrowed
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import daily_amounts

BudgetState = Literal["ok", "warning", "exceeded", "insufficient_history", "stale", "no_budget"]
#: A budget is stale after this many days without a newly calculated day.
_STALE_DAYS: Final = 3
_ZERO: Final = Decimal(0)


class BudgetThreshold(ResponseModel):
    """A share of the budget that is reported when it is reached."""

    on: ThresholdKind
    percent: Exact = Field(examples=["80"])


class BudgetItem(ResponseModel):
    """A budget, with the author, time and reason of its present version."""

    id: str = Field(examples=["payments"])
    name: str
    scope: dict[str, list[str]] = Field(description="The rows that count: those that match every condition.")
    parent: str | None
    amounts: dict[str, Exact] = Field(description="The amounts of single months.")
    monthly: Exact | None = Field(description="The amount of all other months.")
    thresholds: list[BudgetThreshold]
    notify: list[str] = Field(description="The sinks that get its events; empty for all that accept events of budgets.")
    expected: dict[str, Exact] = Field(description="The expected costs of single months, as entered by people.")
    version: int = Field(description="From 1, one more with each change.")
    who: str
    at: Instant
    reason: str | None

    @classmethod
    def of(cls, version: BudgetVersion, budget: Budget) -> BudgetItem:
        """Return a version of a budget for a response."""
        return cls(
            id=version.id,
            name=budget.name,
            scope={name: list(values) for name, values in budget.scope.items()},
            parent=budget.parent,
            amounts=dict(sorted(budget.amounts.items())),
            monthly=budget.monthly,
            thresholds=[BudgetThreshold.like(each) for each in budget.thresholds],
            notify=list(budget.notify),
            expected=dict(sorted(budget.expected.items())),
            version=version.version,
            who=version.who,
            at=version.at,
            reason=version.reason,
        )


class BudgetStatus(ResponseModel):
    """The status of a budget in a month. The days that are calculated from their present bill count; their costs are
    compared with the part of the budget for the same days."""

    id: str
    name: str
    period_id: str = Field(examples=["2026-11"])
    currency: str = Field(examples=["USD"])
    budget: Exact | None = Field(description="The budget of the month; null if it has none.")
    to_date: Sum = Field(description="The costs charged on the days that count.")
    budget_to_date: Exact | None = Field(description="The part of the budget for these days.")
    days: int = Field(description="The number of days that count.")
    data_through: date | None = Field(description="The last day that counts.")
    missing_days: list[date] = Field(description="Days that should be calculated by now but do not count.")
    forecast: Exact | None = Field(
        description="The expected cost of the month: as entered in the budget, else the calculated forecast."
    )
    calculated_forecast: Exact | None = Field(
        description="The calculated forecast, an estimate; null for other months than that of the last calculated day, "
        "or if there are too few days."
    )
    projected_over: Exact | None = Field(description="The amount by which the forecast exceeds the budget.")
    crossed: list[BudgetThreshold] = Field(description="The thresholds that are reached.")
    state: BudgetState = Field(
        description="`exceeded`: the charged costs exceed the budget; `warning`: a threshold is reached; `stale`: "
        f"no day was calculated for more than {_STALE_DAYS} days; `insufficient_history`: there is a threshold for the "
        "forecast, but no forecast."
    )


class BudgetListItem(BudgetItem):
    """A budget, and its status in the requested month."""

    status: BudgetStatus


@dataclass(frozen=True)
class BudgetProgress:
    """The status of a budget in a month, and the amounts that its thresholds are compared with; None without a budgeted
    amount."""

    status: BudgetStatus
    spending: Spending | None


@dataclass(frozen=True)
class BudgetReport:
    """The progress of budgets, from the facts of a reader. ``states`` are those of all known days; the days before
    ``due_before`` should be calculated."""

    reader: TenantReader
    states: Mapping[date, DayState]
    currency: str
    due_before: date

    @cached_property
    def _known(self) -> DayRange | None:
        return known_days(self.states)

    @cached_property
    def _scheduled(self) -> Sequence[str]:
        return () if self._known is None else scheduled_types(self.reader, self._known)

    def of(self, budget: Budget, period: AccountingPeriod) -> BudgetProgress:
        """Return the progress of a budget in a month.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        states, known = self.states, self._known
        counted = [day for day in period.days if day in states and states[day].chargebacks.is_current]
        last = None if known is None else known.end - ONE_DAY
        days = period.days if known is None else DayRange.spanning([*period.days, *known])
        amounts = daily_amounts(self.reader, CHARGEBACKS, _selected(budget, days, self.reader.categories.index))
        to_date = total(amounts.get(day, _ZERO) for day in counted)
        calculated = self.forecast(budget, amounts) if last is not None and last in period.days else None
        expected = budget.expected.get(period.id, calculated)
        amount = budget.amount_of(period)
        for_days = None if amount is None else part_of_month(amount, len(counted), len(period.days))
        spending = None if amount is None or for_days is None else Spending(amount, to_date, for_days, expected)
        crossed = [each for each in budget.thresholds if spending is not None and spending.crosses(each)]
        missing = [day for day in period.days if day < self.due_before and day not in counted]
        return BudgetProgress(
            BudgetStatus(
                id=budget.id,
                name=budget.name,
                period_id=period.id,
                currency=self.currency,
                budget=amount,
                to_date=to_date,
                budget_to_date=for_days,
                days=len(counted),
                data_through=max(counted, default=None),
                missing_days=missing,
                forecast=expected,
                calculated_forecast=calculated,
                projected_over=_over(amount, expected),
                crossed=[BudgetThreshold.like(each) for each in crossed],
                state=_state(
                    spending,
                    is_stale=_is_stale(period, counted, self.due_before),
                    is_crossed=bool(crossed),
                    lacks_forecast=expected is None
                    and last is not None
                    and period.start <= last < period.last_day
                    and any(each.on == FORECAST for each in budget.thresholds),
                ),
            ),
            spending,
        )

    def forecast(self, budget: Budget, amounts: Mapping[date, Decimal]) -> Decimal | None:
        """Return the forecast of the rows of a budget for the month of the last calculated day, from their amounts by
        day."""
        if self._known is None:
            return None
        selection = _selected(budget, self._known, self.reader.categories.index)
        found = forecast(history(self.reader, selection, self._known, self._scheduled, amounts), self.currency)
        return None if found is None else found.expected


def _selected(budget: Budget, days: DayRange, categories: CategoryIndex) -> Selection:
    selection = Selection.of_days(days)
    return narrowed(selection, CHARGEBACKS, RowScope.of(budget.scope), categories) if budget.scope else selection


def _over(amount: Decimal | None, expected: Decimal | None) -> Decimal | None:
    if amount is None or expected is None:
        return None
    return max(difference(expected, amount), _ZERO)


def _is_stale(period: AccountingPeriod, counted: Sequence[date], due_before: date) -> bool:
    newest = max(counted, default=period.start - ONE_DAY)
    return newest < min(period.last_day, due_before - ONE_DAY) - timedelta(days=_STALE_DAYS)


def _state(spending: Spending | None, *, is_stale: bool, is_crossed: bool, lacks_forecast: bool) -> BudgetState:
    if spending is None:
        return "no_budget"
    if spending.to_date > spending.amount:
        return "exceeded"
    if is_stale:
        return "stale"
    if is_crossed:
        return "warning"
    return "insufficient_history" if lacks_forecast else "ok"


def is_within(budget: Budget, scope: RowScope | None, categories: CategoryIndex) -> bool:
    """Return whether all rows of a budget are in a scope: the budget has each condition of the scope, with no other
    values."""
    if scope is None:
        return True
    for name, allowed in scope.conditions:
        values = frozenset(budget.scope.get(name, ()))
        if not values:
            return False
        if not values <= allowed and not _lies_below(name, values, allowed, categories):
            return False
    return True


def _lies_below(name: str, values: frozenset[str], allowed: frozenset[str], categories: CategoryIndex) -> bool:
    """Return whether values of a cost category belong to allowed ones on all days."""
    key = name.removeprefix(CATEGORY)
    if not name.startswith(CATEGORY) or key not in categories.by_key:
        return False
    return all(values <= reached for reached in with_descendants(categories.category(key), allowed).values())
