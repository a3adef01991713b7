"""The demo's closed months: closed, disputed and adjusted as people would do it with the API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from chargeback.cli.closing import close_month
from chargeback.cli.statements import opened
from chargeback.demo.categories import COST_CENTER
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.cents import rounded_cents
from chargeback.model.inventory import NO_VALUES
from chargeback.reports.closing.adjusting import adjust
from chargeback.reports.closing.close import ClosingOrder
from chargeback.reports.closing.preview import PeriodItem, list_periods
from chargeback.reports.closing.statements import statements_of
from chargeback.store.control.adjustments import NewAdjustment
from chargeback.store.control.catalogue import touch
from chargeback.store.control.invoices import Invoice, save_invoice
from chargeback.store.control.statement_replies import DISPUTED, StatementKey, add_reply

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.model.days import Clock

_WHO: Final = "demo"
_BY: Final = f"category:{COST_CENTER}"
_MONTHS: Final = 2
#: How long before the end of the last closed month the day is whose bill grows later: each run asks for it again.
_LATE: Final = timedelta(days=2)
#: When the provider sends its invoice after the end of a month, and by when it is to be paid.
_INVOICED: Final = timedelta(days=4)
_DUE: Final = timedelta(days=34)
_MOVED: Final = Decimal("250.00")


@dataclass(frozen=True)
class ClosedMonths:
    """What was closed: the months, and the day of the last one whose bill grows afterwards."""

    periods: tuple[AccountingPeriod, ...]
    late_bill: date


def close_demo_months(tenant: Tenant, now: Clock) -> ClosedMonths | None:
    """Close the last month that is complete and the one before it, as far as the days of the demo reach; return None
    if a month was closed before, or none is complete.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    with opened(tenant) as (view, _, posted):
        found = list_periods(view, posted, now())
    ready = next((n for n, each in enumerate(found.items) if each.state == "ready"), None)
    if found.books_begin is not None or ready is None:
        return None
    chosen = list(reversed(found.items[ready : ready + _MONTHS]))
    last = chosen[-1]
    _enter_invoice(tenant, last, now)
    for each in chosen:
        order = ClosingOrder(AccountingPeriod(each.start), _WHO, note="Closed by the demo")
        if each.blockers:  # the demo begins within its first month, and nobody will bill the days before it
            order = replace(order, accept=("day-missing",), reason="The demo begins in this month")
        close_month(tenant, order, now)
    return ClosedMonths(tuple(AccountingPeriod(each.start) for each in chosen), last.end - _LATE)


def dispute_and_adjust(tenant: Tenant, period: AccountingPeriod, now: Clock) -> None:
    """Let the cost centre with the second largest statement of the last closed month dispute it, and move an amount
    from it to the largest one, in the month that is open.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    with opened(tenant) as (view, reader, posted):
        found = statements_of(view, reader, posted, period, _BY, "posted")
        ranked = sorted(found.items, key=lambda each: each.amount, reverse=True)
        taker, giver = [each for each in ranked if each.recipient.value not in NO_VALUES][:2]
        key = StatementKey(giver.number, period.id, _BY, giver.recipient.value, found.heading.revision, giver.digest)
        note = f"The connector that both use is charged to us alone: {_MOVED} of it is not ours."
        with view.store.control.write(durable=True) as connection:
            add_reply(connection, key, DISPUTED, note, found.heading.data_through, _WHO, who=_WHO)
        new = NewAdjustment(
            period.next,
            period.next,
            _BY,
            taker.recipient.value,
            giver.recipient.value,
            _MOVED,
            "reallocation",
            period,
            f"Shared connector of {period.name}",
            giver.number,
        )
        adjust(partial(view.store.control.write, durable=True), new, _WHO, now)


def _enter_invoice(tenant: Tenant, month: PeriodItem, now: Clock) -> None:
    """Enter the provider's invoice of a month, over what it billed, in cents."""
    currency = tenant.settings.currency
    content: dict[str, Any] = {
        "issuer": "The provider of the demo",
        "kind": "invoice",
        "status": "issued",
        "references": None,
        "issued": (month.end + _INVOICED).isoformat(),
        "due": (month.end + _DUE).isoformat(),
        "currency": currency,
        "total": f"{rounded_cents(month.totals.billed, currency):f}",
        "tax": None,
        "lines": [],
    }
    with opened(tenant) as (view, _, _), view.store.control.write(durable=True) as connection:
        number = f"INV-{month.start:%Y%m}"
        save_invoice(connection, Invoice(AccountingPeriod(month.start), number, content, _WHO, now()))
        touch(connection)
