"""Budgets in a run: what has crossed a threshold is told once a month, as an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Final, Self

from chargeback.errors import StorageError
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import FORECAST, Budget, Threshold
from chargeback.pipeline.run_context import RunContext
from chargeback.reports.budgets import LookedAt, look_at
from chargeback.store.control.budgets import BudgetVersion, list_budgets, read_states, save_state
from chargeback.store.control.catalogue import read_published_revision
from chargeback.store.control.days import DayState, read_days
from chargeback.store.control.events import BUDGET_CLEARED, BUDGET_CROSSED, BUDGET_LATE, NOTIFY, Event, add_events
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader

#: On how many days in a row a forecast has to reach a threshold until that is told.
_ENOUGH: Final = 2


def tell_budgets(run: RunContext) -> None:
    """Record the events of the budgets whose facts or versions have changed, of the month of the last calculated day
    and of the one before it. What cannot be read is recorded, and looked at again by the next run.

    Raises:
        LeaseLost: another process has taken over.
    """
    with run.store.control.read() as connection:
        budgets = list_budgets(connection)
        if not budgets:
            return
        known = read_states(connection)
        revision, _ = read_published_revision(connection)
        states = {each.tracking_date: each for each in read_days(connection)}
    calculated = [day for day, state in states.items() if state.was_calculated]
    if not calculated:
        return
    month = AccountingPeriod.of(max(calculated))
    due = [
        (version, period, before)
        for version in budgets
        for period in (month.previous, month)
        # A month that was over before a budget was there is none of its months.
        if (version.id, period.id) in known or period == month
        if not (before := _Told.of(known.get((version.id, period.id)))).is_of(version, revision)
    ]
    if not due:
        return
    try:
        with QueryEngine() as engine, open_reader(engine, run.store, CancellationToken(), LookupCaches()) as reader:
            looks = [_Look(run, reader, states, *each, is_past=each[1] != month) for each in due]
            found = [(each, *each.found()) for each in looks if each.budget is not None]
    except StorageError as error:
        run.record_error(f"budgets are looked at again in the next run: {error}")
        return
    with run.lease.write() as connection:
        for look, told, events in found:
            add_events(connection, events, run.now())
            after = {"version": look.version.version, "revision": revision}
            state = after | {"forecasts": told.forecasts, "ratios": told.ratios, "crossed": told.crossed}
            save_state(connection, look.version.id, look.period.id, state)


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
class _Look:
    """A budget and a month that are looked at; ``before`` is what was found last."""

    run: RunContext
    reader: TenantReader
    states: Mapping[date, DayState]
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
        settings = self.run.tenant.settings
        due_before = self.run.today - timedelta(days=settings.cutoff_days)
        looked = look_at(self.reader, self.states, self.budget, self.period, settings.currency, due_before)
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
        }
        # What was crossed in time is not late as well.
        which = "cleared" if kind == BUDGET_CLEARED else "crossed"
        once = f"budget {which} {self.version.id} {self.period.id} {threshold.key}"
        return Event(kind, f"budget/{self.version.id}", body, once)
