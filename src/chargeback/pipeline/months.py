"""Months in a run: the first open one that can be closed is told once."""

from __future__ import annotations

from chargeback.model.accounting import AccountingPeriod
from chargeback.pipeline.look import Look
from chargeback.store.control.closings import read_books
from chargeback.store.control.events import PERIOD_READY, Event


def tell_months(look: Look) -> None:
    """Record that each day of the month after the last closed one is calculated from its present bill. Where no month
    was ever closed, nobody waits for it.

    Raises:
        LeaseLost: another process has taken over.
    """
    run = look.run
    with run.store.control.read() as connection:
        period = read_books(connection).first_open
    if period is None or period >= AccountingPeriod.of(run.today):
        return
    if all(day in look.states and look.states[day].chargebacks.is_current for day in period.days):
        body = {"days": len(period.days)}
        look.tell([Event(PERIOD_READY, f"period/{period.id}", body, f"period ready {period.id}")])
