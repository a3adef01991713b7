"""The events that a run records of budgets, of months and of contracts, each once.

- Budgets: a threshold is crossed, or a crossed forecast is clear of it again.
- Months: the first open month can be closed, or its invoices differ from the bill.
- Contracts: a commitment is used up, will not be used up, or ends soon. The shortfall of an interval is posted as
  adjustments at its end if the contract says who pays for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, Self

from chargeback.access.scope import CATEGORY
from chargeback.allocation.split import split_exactly
from chargeback.config.contracts import ContractSettings, ShortfallSettings
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import FORECAST, Budget, Threshold
from chargeback.model.cents import minor_places, rounded_cents
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import PLACES, difference, from_units, render, to_units, total
from chargeback.pipeline.run_facts import RunFacts
from chargeback.reports.budgets import BudgetProgress, BudgetReport, is_within
from chargeback.reports.closing.adjusting import adjust
from chargeback.reports.closing.preview import tie_out
from chargeback.reports.contracts import CommitmentInterval, CommitmentItem, Standing
from chargeback.store.control.adjustments import NewAdjustment, read_adjustments
from chargeback.store.control.budgets import BudgetVersion, list_budgets, read_states, save_state
from chargeback.store.control.catalogue import contracts_revision, save_contracts_revision
from chargeback.store.control.closings import read_books
from chargeback.store.control.events import (
    BELONGS_TO,
    BUDGET_CLEARED,
    BUDGET_CROSSED,
    BUDGET_LATE,
    CONTRACT_ENDING,
    CONTRACT_EXHAUSTED,
    CONTRACT_PACE,
    INVOICE_DIFFERS,
    NOTIFY,
    OWNERS,
    PERIOD_READY,
    Event,
    add_events,
)
from chargeback.store.control.invoices import months_with_invoices, read_invoices
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by

#: A forecast has to reach a threshold on this many days in a row before an event is recorded.
_DAYS_IN_A_ROW: Final = 2

#: How long before the end of a contract the event about it is recorded.
_SOON: Final = timedelta(days=60)
#: A shortfall is expected below this part of the necessary pace, once this part of the days of an interval is known.
_SLOW_PACE: Final = 0.9
_KNOWN_PART: Final = 0.5
#: The actor of the adjustments for shortfalls.
_POSTED_BY: Final = "contract"


def record_budgets(facts: RunFacts) -> None:
    """Record the events of budgets whose facts or versions have changed, for the month of the last calculated day and
    the month before it.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    with facts.run.store.control.read() as connection:
        budgets = list_budgets(connection)
        known = read_states(connection)
    if not budgets or not facts.calculated:
        return
    month = AccountingPeriod.of(facts.calculated[-1])
    due = [
        (version, period, before)
        for version in budgets
        for period in (month.previous, month)
        # A month that was over before the budget existed does not count.
        if (version.id, period.id) in known or period == month
        if not (before := _BudgetState.of(known.get((version.id, period.id)))).is_of(version, facts.revision)
    ]
    if not due:
        return
    with facts.reader() as reader:
        due_before = facts.run.today - timedelta(days=facts.run.tenant.settings.cutoff_days)
        report = BudgetReport(reader, facts.states, facts.run.tenant.settings.currency, due_before)
        months = [_BudgetMonth(facts, report, *each, is_past=each[1] != month) for each in due]
        found = [(each, *each.evaluate()) for each in months if each.budget is not None]
    with facts.run.lease.write() as connection:
        for each, now, events in found:
            add_events(connection, events, facts.run.now())
            state = {
                "version": each.version.version,
                "revision": facts.revision,
                "forecasts": now.forecasts,
                "ratios": now.ratios,
                "crossed": now.crossed,
            }
            save_state(connection, each.version.id, each.period.id, state)


@dataclass(frozen=True)
class _BudgetState:
    """The state of a month of a budget, in one version of the budget and one revision of the facts.

    ``forecasts`` has for each threshold of the forecast that is reached: the last day of the facts, the number of days
    in a row, and whether an event was recorded. ``ratios`` are the charged and the expected part of the budget,
    ``crossed`` the keys of the reached thresholds.
    """

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
class _BudgetMonth:
    """A month of a budget; ``before`` is its last stored state."""

    facts: RunFacts
    report: BudgetReport
    version: BudgetVersion
    period: AccountingPeriod
    before: _BudgetState
    is_past: bool

    @property
    def budget(self) -> Budget | None:
        return self.version.budget

    def evaluate(self) -> tuple[_BudgetState, list[Event]]:
        """Return the present state and its events."""
        if self.budget is None:
            return self.before, []
        progress = self.report.of(self.budget, self.period)
        forecasts: dict[str, Any] = {}
        events = [
            self._event(kind, progress, each)
            for each in self.budget.thresholds
            for kind in self._kinds(progress, each, forecasts)
        ]
        spending = progress.spending
        if spending is None:
            return _BudgetState(forecasts=forecasts), events
        crossed = [
            each.key
            for each in self.budget.thresholds
            if (forecasts.get(each.key, ("", 0, False))[2] if each.on == FORECAST else spending.crosses(each))
        ]
        return _BudgetState(forecasts=forecasts, ratios=spending.ratios, crossed=crossed), events

    def _kinds(self, progress: BudgetProgress, threshold: Threshold, forecasts: dict[str, Any]) -> Iterator[str]:
        """Yield the kinds of the events of a threshold; put the state of a threshold of the forecast into
        ``forecasts``."""
        spending, last = progress.spending, progress.status.data_through
        if spending is None or last is None:
            return
        if threshold.on != FORECAST:
            if spending.crosses(threshold):
                yield BUDGET_LATE if self.is_past else BUDGET_CROSSED
            return
        through, days, is_recorded = self.before.forecasts.get(threshold.key, ("", 0, False))
        if spending.crosses(threshold):
            days += last.isoformat() > through
            if days >= _DAYS_IN_A_ROW:
                yield BUDGET_CROSSED
            forecasts[threshold.key] = (last.isoformat(), days, is_recorded or days >= _DAYS_IN_A_ROW)
        elif is_recorded and not spending.is_clear_of(threshold):
            forecasts[threshold.key] = (through, days, is_recorded)
        elif is_recorded:
            yield BUDGET_CLEARED

    def _event(self, kind: str, progress: BudgetProgress, threshold: Threshold) -> Event:
        status = progress.status.model_dump(mode="json")
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
        # Crossed and late have the same key: a threshold that was crossed in time is not reported as late, too.
        which = "cleared" if kind == BUDGET_CLEARED else "crossed"
        once = f"budget {which} {self.version.id} {self.period.id} {threshold.key}"
        return Event(kind, f"budget/{self.version.id}", body, once)

    def _owners(self, kind: str) -> list[str]:
        """Return the sinks with a scope in which all rows of the budget lie."""
        if self.budget is None:
            return []
        index = self.report.reader.categories.index
        owners = self.facts.owners(kind).items()
        return [name for scope, names in owners if is_within(self.budget, scope, index) for name in names]


def _belongs_to(budget: Budget | None) -> dict[str, str]:
    """Return the value of each cost category that all rows of a budget belong to."""
    scope = {} if budget is None else budget.scope
    return {
        name.removeprefix(CATEGORY): values[0]
        for name, values in scope.items()
        if name.startswith(CATEGORY) and len(values) == 1
    }


def record_months(facts: RunFacts) -> None:
    """Record that the month after the last closed one can be closed: each of its days is calculated from its present
    bill. Nothing is recorded if no month was ever closed. Record which invoices of open months differ from their bills,
    once for each difference.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    run = facts.run
    with run.store.control.read() as connection:
        books, invoiced = read_books(connection), months_with_invoices(connection)
    ready = books.first_open
    found = []
    if ready is not None and _is_whole(facts, ready):
        body = {"days": len(ready.days)}
        found.append(Event(PERIOD_READY, f"period/{ready.id}", body, f"period ready {ready.id}"))
    found += _differences(facts, [each for each in invoiced if books.find(each) is None and _is_whole(facts, each)])
    facts.record(found)


def _is_whole(facts: RunFacts, period: AccountingPeriod) -> bool:
    """Return whether a month is over, and each day of it is calculated from its present bill."""
    if period >= AccountingPeriod.of(facts.run.today):
        return False
    return all(day in facts.states and facts.states[day].chargebacks.is_current for day in period.days)


def _differences(facts: RunFacts, periods: list[AccountingPeriod]) -> Iterator[Event]:
    """Yield the events of months whose invoices differ from their bills."""
    if not periods:
        return
    with facts.reader() as reader, facts.run.store.control.read() as connection:
        for period in periods:
            billed = total(sums_by(reader, BILLING_LINES, Selection(period.window), ()).values())
            ties = tie_out(read_invoices(connection, period), billed, reader, period)
            if not ties.difference:
                continue
            differs_by = render(ties.difference)
            body = {
                "period_id": period.id,
                "invoices": ties.invoices,
                "invoiced": render(ties.total),
                "billed": render(billed),
                "difference": differs_by,
                "currency": facts.run.tenant.settings.currency,
            }
            once = f"invoice differs {period.id} {differs_by}"
            yield Event(INVOICE_DIFFERS, f"invoice/{period.id}", body, once)


def record_contracts(facts: RunFacts) -> None:
    """Record the events of contracts, and post the shortfalls of intervals that are over, if the facts have changed.
    The event about the end of a contract depends on the date alone.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    run, settings = facts.run, facts.run.tenant.settings
    if not settings.contracts or not facts.calculated:
        return
    events = []
    for contract in settings.contracts:
        if contract.end_date - _SOON <= run.today <= contract.end_date:
            body = {"issuer": contract.issuer, "end_date": f"{contract.end_date}"}
            once = f"contract ending {contract.id} {contract.end_date}"
            events.append(Event(CONTRACT_ENDING, f"contract/{contract.id}", body, once))
    with run.store.control.read() as connection:
        is_known = contracts_revision(connection) == facts.revision
    if not is_known:
        with facts.reader() as reader:
            standing = Standing.of(reader, facts.states, settings.contracts, run.today)
            for contract in settings.contracts:
                item = standing.item(contract, settings.currency)
                for policy, commitment in zip(contract.commitments, item.commitments, strict=True):
                    events += _of_commitment(contract, commitment, item.currency)
                    if policy.shortfall is not None:
                        _post_shortfalls(facts, reader, f"{contract.id}/{commitment.id}", policy.shortfall, commitment)
    facts.record(events)
    if not is_known:
        with run.lease.write() as connection:
            save_contracts_revision(connection, facts.revision)


def _post_shortfalls(
    facts: RunFacts, reader: TenantReader, name: str, policy: ShortfallSettings, commitment: CommitmentItem
) -> None:
    """Post the shortfalls of the intervals that are over, to the month of their last day or, if that is closed, to the
    first open month. If an amount was posted before, only the difference is posted."""
    run, currency = facts.run, facts.run.tenant.settings.currency
    with run.store.control.read() as connection:
        books, known = read_books(connection), read_adjustments(connection)
    for each in commitment.intervals:
        if not each.is_over or each.shortfall is None:
            continue
        reference = f"contract {name} {each.start_date}"
        shares = _shares_of_shortfall(
            reader, DayRange(each.start_date, each.end_date + ONE_DAY), policy, each.shortfall, currency
        )
        due = {(policy.by, value): amount for value, amount in shares.items()}
        for made in (one.made for one in known if one.made.reference == reference and one.removed_at is None):
            whose = (made.grouping, made.value)
            due[whose] = difference(due.get(whose, Decimal(0)), made.amount)
        month = AccountingPeriod.of(each.end_date)
        if books.first_open is not None:
            month = max(month, books.first_open)
        for (by, value), amount in sorted(due.items()):
            if amount:
                new = NewAdjustment(
                    period=month,
                    until=month,
                    grouping=by,
                    value=value,
                    from_value=None,
                    amount=rounded_cents(amount, currency),  # is in whole cents, with more digits
                    kind="fee",
                    applies_to=AccountingPeriod.of(each.end_date),
                    reason=f"Left of {name}, {each.start_date} to {each.end_date}",
                    reference=reference,
                )
                adjust(run.lease.write, new, _POSTED_BY, run.now)


def _shares_of_shortfall(
    reader: TenantReader, days: DayRange, policy: ShortfallSettings, shortfall: Decimal, currency: str
) -> dict[str, Decimal]:
    """Return the part of a shortfall that each value pays, in cents that sum to it."""
    whole = rounded_cents(shortfall, currency)
    if policy.value is not None:
        return {policy.value: whole}
    charged = sums_by(reader, CHARGEBACKS, Selection.of_days(days), (policy.by,))
    weights = sorted((value or "", to_units(amount)) for (value,), amount in charged.items() if amount > 0)
    places = minor_places(currency)
    cents = split_exactly(to_units(whole) // 10 ** (PLACES - places), weights) if weights else []
    return {value: from_units(units, places) for value, units in cents}


def _of_commitment(contract: ContractSettings, commitment: CommitmentItem, currency: str) -> Iterator[Event]:
    """Yield the events of the intervals of a commitment."""
    common = {"commitment": commitment.id, "unit": commitment.unit, "currency": currency}
    for each in commitment.intervals:
        if each.remaining <= 0:
            kind = CONTRACT_EXHAUSTED
        elif _has_expected_shortfall(each):
            kind = CONTRACT_PACE
        else:
            continue
        status = each.model_dump(mode="json", include={"start_date", "end_date", "committed", "drawn", "shortfall"})
        once = f"{kind} {contract.id}/{commitment.id} {each.start_date}"
        yield Event(kind, f"contract/{contract.id}", common | status | {"pace": each.pace}, once)


def _has_expected_shortfall(interval: CommitmentInterval) -> bool:
    """Return whether an interval is expected to end before its commitment is used up."""
    length = (interval.end_date - interval.start_date).days + 1
    is_slow = interval.pace is not None and interval.pace < _SLOW_PACE and interval.counted_days >= _KNOWN_PART * length
    return is_slow and interval.shortfall is not None and interval.shortfall > 0
