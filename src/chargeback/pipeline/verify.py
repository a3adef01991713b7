"""Verify: every day's bill against its chargebacks, to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pyarrow.compute as pc
import pyarrow.parquet as pq

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import total
from chargeback.store.control.days import read_days
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, FactTables
from chargeback.store.tenant import TenantStore

CALCULATED = "calculated"
PENDING = "pending"


@dataclass(frozen=True, slots=True)
class DayCheck:
    """One day: what was billed, what was charged, and whether the day is ``calculated`` or ``pending``."""

    day: date
    billing: Decimal
    chargebacks: Decimal
    state: str

    @property
    def difference(self) -> Decimal:
        """What was charged beyond the bill; anything but zero in a calculated day is a fault."""
        return total([self.chargebacks, self.billing.copy_negate()])

    @property
    def is_wrong(self) -> bool:
        """Whether the day is calculated and does not add up."""
        return self.state == CALCULATED and self.difference != 0


def verify(store: TenantStore) -> Iterator[DayCheck]:
    """Every day that has been gathered, ascending.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    with store.control.read() as connection:
        states = [state for state in read_days(connection) if state.billing_gathered]
    for state in states:
        day = state.tracking_date
        yield DayCheck(
            day,
            _sum(store.facts, BILLING_TABLE, "total_cost", day),
            _sum(store.facts, CHARGEBACKS_TABLE, "amount", day),
            CALCULATED if state.chargeback_calculated else PENDING,
        )


def _sum(facts: FactTables, table: str, column: str, day: date) -> Decimal:
    files = facts.snapshot(table).within(DayRange(day, day + ONE_DAY))
    sums = [pc.sum(pq.read_table(file.path, columns=[column], partitioning=None)[column]).as_py() for file in files]
    return total(sums)
