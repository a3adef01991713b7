"""Budgets in a run: what has crossed a threshold is told once a month, as an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Self

from chargeback.access.scope import CATEGORY
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import FORECAST, Budget, Threshold
from chargeback.pipeline.look import Look
from chargeback.reports.budgets import BudgetReport, LookedAt, is_within
from chargeback.store.control.budgets import BudgetVersion, list_budgets, read_states, save_state
from chargeback.store.control.events import (
    BELONGS_TO,
    BUDGET_CLEARED,
    BUDGET_CROSSED,
    BUDGET_LATE,
    NOTIFY,
    OWNERS,
    Event,
    add_events,
)

#: On how many days in a row a forecast has to reach a threshold until that is told.
_ENOUGH: Final = 2


def tell_budgets(look: Look) -> None:
    """Record the events of the budgets whose facts or versions have changed, of the month of the last calculated day
    and of the one before it.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    with look.run.store.control.read() as connection:
        budgets = list_budgets(connection)
        known = read_states(connection)
    if not budgets or not look.calculated:
        return
    month = AccountingPeriod.of(look.calculated[-1])
    due = [
        (version, period, before)
        for version in budgets
        for period in (month.previous, month)
        # A month that was over before a budget was there is none of its months.
        if (version.id, period.id) in known or period == month
        if not (before := _Told.of(known.get((version.id, period.id)))).is_of(version, look.revision)
    ]
    if not due:
        return
    with look.reader() as reader:
        due_before = look.run.today - timedelta(days=look.run.tenant.settings.cutoff_days)
        report = BudgetReport(reader, look.states, look.run.tenant.settings.currency, due_before)
        looks = [_OfBudget(look, report, *each, is_past=each[1] != month) for each in due]
        found = [(each, *each.found()) for each in looks if each.budget is not None]
    with look.run.lease.write() as connection:
        for each, told, events in found:
            add_events(connection, events, look.run.now())
            after = {"version": each.version.version, "revision": look.revision}
            state = after | {"forecasts": told.forecasts, "ratios": told.ratios, "crossed": told.crossed}
            save_state(connection, each.version.id, each.period.id, state)


@dataclass(frozen=True)
class _Told:
    """What was found of a budget and a month: of which version and facts, and of each threshold of the forecast the
    last day for which it was reached, on how many days in a row, and whether that was told; which parts of the budget
    are charged and expected; and the thresholds that are reached."""

    version: int = 0
    revision: int = -1
    forecasts: Mapping[str, Any] = field(default_factory=dict)
    ratios: Sequence[float | None] = ()
    crossed: Sequence[str] = ()

    @classmethod
    def of(cls, state: Mapping[str, Any] | None) -> Self:
        return cls() if state is None else cls(**state)

    def is_of(self, version: BudgetVersion, revision: int) -> bool:
        return (self.version, self.revision) == (version.version, revision)


@dataclass(frozen=True)
class _OfBudget:
    """A budget and a month that are looked at; ``before`` is what was found last."""

    look: Look
    report: BudgetReport
    version: BudgetVersion
    period: AccountingPeriod
    before: _Told
    is_past: bool

    @property
    def budget(self) -> Budget | None:
        return self.version.budget

    def found(self) -> tuple[_Told, list[Event]]:
        """Return what is found now, and the events of it."""
        if self.budget is None:
            return self.before, []
        looked = self.report.of(self.budget, self.period)
        forecasts: dict[str, Any] = {}
        events = [
            self._event(kind, looked, each)
            for each in self.budget.thresholds
            for kind in self._kinds(looked, each, forecasts)
        ]
        spending = looked.spending
        if spending is None:
            return _Told(forecasts=forecasts), events
        crossed = [
            each.key
            for each in self.budget.thresholds
            if (forecasts.get(each.key, ("", 0, False))[2] if each.on == FORECAST else spending.crosses(each))
        ]
        return _Told(forecasts=forecasts, ratios=spending.ratios, crossed=crossed), events

    def _kinds(self, looked: LookedAt, threshold: Threshold, forecasts: dict[str, Any]) -> Iterator[str]:
        """Yield the kinds of the events of a threshold, and note how far one of the forecast is."""
        spending, last = looked.spending, looked.status.data_through
        if spending is None or last is None:
            return
        if threshold.on != FORECAST:
            if spending.crosses(threshold):
                yield BUDGET_LATE if self.is_past else BUDGET_CROSSED
            return
        through, days, told = self.before.forecasts.get(threshold.key, ("", 0, False))
        if spending.crosses(threshold):
            days += last.isoformat() > through
            if days >= _ENOUGH:
                yield BUDGET_CROSSED
            forecasts[threshold.key] = (last.isoformat(), days, told or days >= _ENOUGH)
        elif told and not spending.is_clear_of(threshold):
            forecasts[threshold.key] = (through, days, told)
        elif told:
            yield BUDGET_CLEARED

    def _event(self, kind: str, looked: LookedAt, threshold: Threshold) -> Event:
        status = looked.status.model_dump(mode="json")
        body = {
            "name": status["name"],
            "period_id": self.period.id,
            "on": threshold.on,
            "percent": f"{threshold.percent:f}",
            "amount": status["budget"],
            "to_date": status["to_date"],
            "expected": status["forecast"],
            "currency": status["currency"],
            NOTIFY: [] if self.budget is None else list(self.budget.notify),
            OWNERS: self._owners(kind),
            BELONGS_TO: _belongs_to(self.budget),
        }
        # What was crossed in time is not late as well.
        which = "cleared" if kind == BUDGET_CLEARED else "crossed"
        once = f"budget {which} {self.version.id} {self.period.id} {threshold.key}"
        return Event(kind, f"budget/{self.version.id}", body, once)

    def _owners(self, kind: str) -> list[str]:
        """Return the sinks with a scope in which all rows of the budget lie."""
        if self.budget is None:
            return []
        index = self.report.reader.categories.index
        owners = self.look.owners(kind).items()
        return [name for scope, names in owners if is_within(self.budget, scope, index) for name in names]


def _belongs_to(budget: Budget | None) -> dict[str, str]:
    """Return the value of each cost category that all rows of a budget belong to."""
    scope = {} if budget is None else budget.scope
    return {
        name.removeprefix(CATEGORY): values[0]
        for name, values in scope.items()
        if name.startswith(CATEGORY) and len(values) == 1
    }
