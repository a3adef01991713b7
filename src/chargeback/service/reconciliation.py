"""The bill of each day beside what was charged for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import Connection

from chargeback.model.days import DayRange
from chargeback.model.money import total
from chargeback.store.control.days import DayState, read_days
from chargeback.store.queries.costs import daily_amounts
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: The states of a day: charged what was billed; not what was billed; not calculated yet; without a bill.
EQUAL: Final = "equal"
DIFFERS: Final = "differs"
PENDING: Final = "pending"
NONE: Final = "none"

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
        return total([self.charged, self.billed.copy_negate()])


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


def states_seen(reader: TenantReader, connection: Connection) -> Mapping[date, DayState]:
    """Return the states of the days that were ever handled, as of the instant that the reader sees."""
    if reader.past_states is not None:
        return reader.past_states
    return {state.tracking_date: state for state in read_days(connection)}


def _day(state: DayState, billed: Decimal, charged: Decimal, has_bill: bool) -> ReconciledDay:
    if state.chargeback_calculated:
        found = EQUAL if billed == charged else DIFFERS
    else:
        found = PENDING if state.billing_gathered or has_bill else NONE
    return ReconciledDay(
        state.tracking_date,
        found,
        billed,
        charged,
        state.topic_attribution_calculated,
        state.error,
        state.calculated_fingerprint,
        state.gathered_at,
    )
