"""The bill beside what was charged for it: of each day, and in sums over days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import Connection

from chargeback.allocation.policies import PolicyCatalogue, policies_hash
from chargeback.model.currency import Conversion
from chargeback.model.days import DayRange
from chargeback.model.money import difference, total
from chargeback.store.control.day_revisions import Revision, read_day_revisions
from chargeback.store.control.days import DayDataset, DayState, read_days
from chargeback.store.queries.daily_totals import DayTotals
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.reconciled_sums import (
    PRODUCT_TYPE,
    RESOURCE_ID,
    CollectedSums,
    CoveredDay,
    ReconciledSums,
)
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import daily_amounts

#: The states of a day: charged what was billed; not what was billed; not calculated yet; without a bill.
EQUAL: Final = "equal"
DIFFERS: Final = "differs"
PENDING: Final = "pending"
NONE: Final = "none"

_WORST_FIRST: Final = (DIFFERS, PENDING, EQUAL, NONE)

#: By what a reconciliation is grouped.
DAY: Final = "day"
MONTH: Final = "month"
GROUPS: Final = (DAY, MONTH, PRODUCT_TYPE, RESOURCE_ID)

_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class ReconciledDay:
    """One UTC day of a tenant: its bill, what was charged, and how far it is. ``fingerprint`` is that of the bill that
    it was calculated from."""

    day: date
    state: str
    billed: Decimal
    charged: Decimal
    topics: bool
    error: str | None
    fingerprint: str | None
    gathered_at: datetime | None

    @property
    def difference(self) -> Decimal:
        """What was charged beyond the bill."""
        return difference(self.charged, self.billed)

    def converted(self, conversion: Conversion) -> ReconciledDay:
        """Return the same in another currency."""
        billed, charged = (conversion.convert(self.day, amount) for amount in (self.billed, self.charged))
        return replace(self, billed=billed, charged=charged)


@dataclass(frozen=True)
class Reconciliation:
    """The items of a reconciliation, ascending by value (days and months as in ISO 8601), and their sum."""

    items: Sequence[ReconciledSums]
    total: ReconciledSums


def grouped_reconciliation(
    reader: TenantReader,
    connection: Connection,
    states: Mapping[date, DayState],
    catalogue: PolicyCatalogue,
    days: DayRange,
    by: str = DAY,
) -> Reconciliation:
    """Return what was billed and charged on ``days`` by one of :data:`GROUPS`. ``states`` are those of the days that
    were ever handled, ``catalogue`` has the present policies.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    sums = CollectedSums(reader, days)
    types = sums.product_types()
    covered = _covered_days(connection, states, catalogue, days, types)
    items = sums.reconciled(covered, None if by in {DAY, MONTH} else by)
    if by == MONTH:
        months: dict[str, list[ReconciledSums]] = {}
        for item in items:
            months.setdefault(item.value[: len("2026-01")], []).append(item)
        items = [summed(of_month, month) for month, of_month in months.items()]
    return Reconciliation(items, summed(items))


def state_of(sums: ReconciledSums) -> str:
    """Return the state of a sum over days, which is that of its worst day: differs, pending, equal, none."""
    if sums.differs:
        return DIFFERS
    if sums.waits:
        return PENDING
    return EQUAL if sums.is_calculated else NONE


def summed(items: Iterable[ReconciledSums], value: str = "") -> ReconciledSums:
    """Return the sum of some items, which differs, waits or is superseded if one of them is."""
    parts = list(items)
    known = [part.is_superseded for part in parts if part.is_superseded is not None]
    return ReconciledSums(
        value,
        billed=total(part.billed for part in parts),
        charged=total(part.charged for part in parts),
        unallocated=total(part.unallocated for part in parts),
        pending=total(part.pending for part in parts),
        by_topic=total(part.by_topic for part in parts),
        lines=sum(part.lines for part in parts),
        rows=sum(part.rows for part in parts),
        differs=any(part.differs for part in parts),
        waits=any(part.waits for part in parts),
        is_calculated=any(part.is_calculated for part in parts),
        is_superseded=any(known) if known else None,
        revision=max((part.revision for part in parts if part.revision is not None), default=None),
        calculated_at=max((part.calculated_at for part in parts if part.calculated_at is not None), default=None),
    )


def _covered_days(
    connection: Connection,
    states: Mapping[date, DayState],
    catalogue: PolicyCatalogue,
    days: DayRange,
    types: Mapping[date, frozenset[str]],
) -> list[CoveredDay]:
    """Return what is known of each day of a range; ``types`` are the product types on the bill of each day."""
    recorded = {
        (revision.tracking_date, revision.revision): revision
        for revision in read_day_revisions(connection, DayDataset.CHARGEBACKS, days)
    }
    hashes = {some: policies_hash(catalogue.policies_of(some)) for some in {frozenset(), *types.values()}}
    found = []
    for day in days:
        state = states.get(day, DayState(day))
        revision = recorded.get((day, state.chargebacks.revision))
        found.append(
            CoveredDay(
                day,
                is_gathered=state.billing_gathered,
                is_calculated=state.chargebacks.is_current,
                is_superseded=_is_superseded(state, revision, hashes[types.get(day, frozenset())]),
                revision=None if revision is None else revision.revision,
                calculated_at=None if revision is None else revision.calculated_at,
            )
        )
    return found


def _is_superseded(state: DayState, revision: Revision | None, present: str) -> bool | None:
    """Return whether a day was calculated under other policies than the present ones of its product types; None if it
    is not calculated from its present bill, or an earlier version calculated it."""
    if not state.chargebacks.is_current or revision is None or revision.policies_hash is None:
        return None
    return revision.policies_hash != present


def reconcile(reader: TenantReader, states: Mapping[date, DayState], days: DayRange) -> list[ReconciledDay]:
    """Return every day of a range, ascending; ``states`` are those of the days that were ever handled.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    selection = Selection.of_days(days)
    billed = daily_amounts(reader, BILLING_LINES, selection)
    charged = daily_amounts(reader, CHARGEBACKS, selection)
    return [
        _day(states.get(day, DayState(day)), billed.get(day, _ZERO), charged.get(day, _ZERO), day in billed)
        for day in days
    ]


def worst_state(reader: TenantReader, connection: Connection, totals: DayTotals, days: DayRange) -> str:
    """Return the state of the worst day of a range, from the remembered sums of its days.

    Raises:
        HistoryGone: the rows of an earlier instant are no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    states = states_seen(reader, connection, days)
    billed, charged = (totals.load(reader, dataset, days) for dataset in (BILLING_LINES, CHARGEBACKS))
    found = {
        _state(states.get(day, DayState(day)), billed.get(day, _ZERO), charged.get(day, _ZERO), day in billed)
        for day in states.keys() | billed.keys() | charged.keys()
    }
    return next((state for state in _WORST_FIRST if state in found), NONE)


def states_seen(
    reader: TenantReader, connection: Connection, within: DayRange | None = None
) -> Mapping[date, DayState]:
    """Return the states of the days that were ever handled, or of those of a range, as of the instant that the reader
    sees."""
    if reader.past_states is None:
        return {state.tracking_date: state for state in read_days(connection, within)}
    if within is None:
        return reader.past_states
    return {day: state for day, state in reader.past_states.items() if day in within}


def _state(state: DayState, billed: Decimal, charged: Decimal, has_bill: bool) -> str:
    if state.chargebacks.is_current:
        return EQUAL if billed == charged else DIFFERS
    return PENDING if state.billing_gathered or has_bill else NONE


def _day(state: DayState, billed: Decimal, charged: Decimal, has_bill: bool) -> ReconciledDay:
    return ReconciledDay(
        state.tracking_date,
        _state(state, billed, charged, has_bill),
        billed,
        charged,
        state.topics.is_current,
        state.error,
        state.chargebacks.fingerprint,
        state.gathered_at,
    )
