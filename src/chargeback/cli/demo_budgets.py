"""The demo's budgets: one that will not be enough, and one that will, as a part of it; and the load test that somebody
has announced."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from chargeback.demo.categories import COST_CENTER
from chargeback.model.budgets import FORECAST, Budget, Threshold
from chargeback.model.days import DayRange
from chargeback.model.inventory import UNASSIGNED
from chargeback.model.money import total
from chargeback.reports.open_tenant import open_tenant
from chargeback.store.control.anomaly_marks import MarkedDays, add_mark, read_marks
from chargeback.store.control.budgets import last_version, write_budget
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from chargeback.store.tenant import open_store

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.demo.traffic import Burst
    from chargeback.store.queries.reader import TenantReader

_ALL: Final = "all"
_BY: Final = f"category:{COST_CENTER}"
_MONTH: Final = 30
_THRESHOLDS: Final = (Threshold("actual", Decimal(80)), Threshold(FORECAST, Decimal(100)))


def write_demo_budgets(tenant: Tenant) -> None:
    """Write the demo's budgets, unless the tenant has or had them, or has no costs yet.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    with open_tenant(tenant) as (view, reader, _):
        with view.store.control.read() as connection:
            if last_version(connection, _ALL) is not None:
                return
        budgets = _budgets(reader)
        with view.store.control.write() as connection:
            for each in budgets:
                write_budget(connection, each.id, each, expected=None, who="demo", reason="The budgets of the demo")


def announce_load_test(tenant: Tenant, test: Burst) -> None:
    """Say that the load test was planned, before anything is known of it, unless somebody has said so.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    with closing(open_store(tenant)) as store:
        store.control.upgrade()
        with store.control.write() as connection:
            if read_marks(connection):
                return
            days = (test.first_day, test.first_day + timedelta(days=test.days - 1))
            note = "Load test of the new consumers"
            add_mark(connection, MarkedDays("", test.member.principal, None, "planned", *days, note, "demo"))


def _budgets(reader: TenantReader) -> list[Budget]:
    """Return a budget of all costs, a tenth below what a month usually costs, and one of the dearest cost centre, a
    tenth above it."""
    if not (known := reader.dates(CHARGEBACKS)):
        return []
    days = DayRange.spanning(known[-_MONTH:])
    sums = sums_by(reader, CHARGEBACKS, Selection.of_days(days), (_BY,))
    costs = {value: amount for (value,), amount in sums.items() if value not in {None, UNASSIGNED}}
    dearest = max(costs, key=lambda each: costs[each], default=None)
    whole = Budget(_ALL, "All of Kafka", monthly=_a_month(total(sums.values()), days, "0.9"), thresholds=_THRESHOLDS)
    if dearest is None:
        return [whole]
    monthly = _a_month(costs[dearest], days, "1.1")
    return [
        whole,
        Budget("largest", dearest.title(), {_BY: (dearest,)}, _ALL, monthly=monthly, thresholds=_THRESHOLDS),
    ]


def _a_month(amount: Decimal, days: DayRange, part: str) -> Decimal:
    """Return a part of what a month costs, in tens of the currency."""
    tens = int(amount * _MONTH * Decimal(part) / len(days)) // 10
    return Decimal(max(tens, 1) * 10)
