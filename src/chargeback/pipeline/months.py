"""Months in a run: the first open one that can be closed is told once, and invoices that are not what was billed."""

from __future__ import annotations

from collections.abc import Iterator

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.money import render, total
from chargeback.pipeline.look import Look
from chargeback.reports.closing.preview import tie_out
from chargeback.store.control.closings import read_books
from chargeback.store.control.events import INVOICE_DIFFERS, PERIOD_READY, Event
from chargeback.store.control.invoices import months_with_invoices, read_invoices
from chargeback.store.queries.datasets import BILLING_LINES
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by


def tell_months(look: Look) -> None:
    """Record that each day of the month after the last closed one is calculated from its present bill. Where no month
    was ever closed, nobody waits for it. Record which invoices of months that are not closed differ from their bills,
    once for each difference.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    run = look.run
    with run.store.control.read() as connection:
        books, invoiced = read_books(connection), months_with_invoices(connection)
    ready = books.first_open
    found = [] if ready is None or not _is_whole(look, ready) else [_ready(ready)]
    found += _differences(look, [each for each in invoiced if books.find(each) is None and _is_whole(look, each)])
    look.tell(found)


def _is_whole(look: Look, period: AccountingPeriod) -> bool:
    """Return whether a month is over, and each day of it is calculated from its present bill."""
    if period >= AccountingPeriod.of(look.run.today):
        return False
    return all(day in look.states and look.states[day].chargebacks.is_current for day in period.days)


def _ready(period: AccountingPeriod) -> Event:
    return Event(PERIOD_READY, f"period/{period.id}", {"days": len(period.days)}, f"period ready {period.id}")


def _differences(look: Look, periods: list[AccountingPeriod]) -> Iterator[Event]:
    if not periods:
        return
    with look.reader() as reader, look.run.store.control.read() as connection:
        for period in periods:
            billed = total(sums_by(reader, BILLING_LINES, Selection(period.window), ()).values())
            ties = tie_out(read_invoices(connection, period), billed, reader, period)
            if not ties.difference:
                continue
            difference = render(ties.difference)
            body = {
                "period_id": period.id,
                "invoices": ties.invoices,
                "invoiced": render(ties.total),
                "billed": render(billed),
                "difference": difference,
                "currency": look.run.tenant.settings.currency,
            }
            once = f"invoice differs {period.id} {difference}"
            yield Event(INVOICE_DIFFERS, f"invoice/{period.id}", body, once)
