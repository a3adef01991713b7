"""The bill of a tenant, with its additional bills.

An additional bill is of another ecosystem, such as a cloud's bill for the network of a cluster. Its lines are lines of
the tenant's days, split by the tenant's usage and policies; their ``ecosystem`` and the ``bill`` in their tier identify
the bill. If a source fails, only its own lines are not updated: the stored ones are kept, and the day is marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Final

from chargeback.config import Tenant
from chargeback.config.configuration import AdditionalBill
from chargeback.ecosystems.contract import GatheredDay, Gatherer, TenantContext
from chargeback.errors import SourceDataError, SourceError
from chargeback.model.billing import BillingLine, bill_of, with_bill
from chargeback.model.days import DayRange
from chargeback.model.money import to_amount
from chargeback.pipeline.evidence import stored_bill
from chargeback.pipeline.run_context import RunContext

#: What a day lacks if an additional bill could not be read: this, and the name of the bill.
BILL_MARK: Final = "bill "


Others = Mapping[AdditionalBill, Gatherer]


@dataclass(frozen=True, slots=True)
class BilledDay:
    """The whole bill of a day. ``held`` has for each additional bill the reason why its stored lines were kept, or
    None."""

    gathered: GatheredDay
    held: Mapping[str, str | None] = field(default_factory=dict)


class TenantBills:
    """Reads the bills of one tenant."""

    def __init__(self, run: RunContext, gatherer: Gatherer, others: Others) -> None:
        self._run = run
        self._gatherer = gatherer
        self._others = others

    def days(self, days: DayRange) -> Iterator[BilledDay]:
        """Yield the bill of each day.

        Raises:
            SourceError: the tenant's own bill could not be fetched.
        """
        if not self._others:
            yield from map(BilledDay, self._gatherer.billing(days))
            return
        found = {bill: self._additional(bill, gatherer, days) for bill, gatherer in self._others.items()}
        for own in self._gatherer.billing(days):
            yield own_with(
                own, {bill.name: each[own.day] for bill, each in found.items()}, self._stored(own.day, found)
            )

    def _stored(self, day: date, found: Mapping[AdditionalBill, Mapping[date, GatheredDay]]) -> list[BillingLine]:
        """Return the stored lines of a day if some are needed."""
        if all(each[day].error is None for each in found.values()):
            return []
        return stored_bill(self._run.store.facts, day)

    def _additional(self, bill: AdditionalBill, gatherer: Gatherer, days: DayRange) -> dict[date, GatheredDay]:
        """Return an additional bill by day, in the tenant's currency; if it fails, every day has the error."""
        try:
            found = {each.day: _translated(bill, each, self._run.tenant) for each in gatherer.billing(days)}
        except SourceError as error:
            self._run.record_error(f"the bill {bill.name} could not be read; its stored lines are kept: {error}")
            return {day: GatheredDay(day, error=str(error)) for day in days}
        for day, each in found.items():
            if each.error is not None:
                self._run.record_error(f"the bill {bill.name}: its stored lines are kept: {each.error}", day)
        return found


def own_with(own: GatheredDay, others: Mapping[str, GatheredDay], stored: list[BillingLine]) -> BilledDay:
    """Return a day's own bill with the additional ones; ``stored`` has the lines that are kept where one failed."""
    held = {f"{BILL_MARK}{name}": each.error for name, each in others.items()}
    if own.error is not None:
        return BilledDay(own, held)
    lines = list(own.lines)
    for name, each in others.items():
        lines += each.lines if each.error is None else [line for line in stored if bill_of(line) == name]
    return BilledDay(GatheredDay(own.day, lines), held)


def _translated(bill: AdditionalBill, day: GatheredDay, tenant: Tenant) -> GatheredDay:
    """Return the lines of an additional bill as lines of the tenant."""
    if day.error is not None:
        return day
    ecosystem, currency = bill.ecosystem.name, tenant.settings.currency
    lines = [replace(with_bill(line, bill.name), ecosystem=ecosystem) for line in day.lines]
    if bill.currency == currency:
        return GatheredDay(day.day, lines)
    try:
        rate = bill.rate(day.day)
    except LookupError as error:
        return GatheredDay(day.day, error=str(error.args[0]))
    try:
        return GatheredDay(day.day, [_converted(line, rate, currency) for line in lines])
    except ValueError as error:
        raise SourceDataError(f"an amount is too large: {error}", source=bill.name) from None


def _converted(line: BillingLine, rate: Decimal, currency: str) -> BillingLine:
    """Return a line in another currency: each amount is converted and rounded once, half-even."""

    def converted(amount: Decimal | None) -> Decimal | None:
        return None if amount is None else to_amount(amount * rate)

    exact = f"{line.total_cost.normalize():f} {line.currency} × {rate.normalize():f}"
    return replace(
        line,
        total_cost=to_amount(line.total_cost * rate),
        unit_price=converted(line.unit_price),
        original_amount=converted(line.original_amount),
        discount_amount=converted(line.discount_amount),
        currency=currency,
        original_text=exact,
    )


@contextmanager
def open_others(tenant: Tenant, context: TenantContext) -> Iterator[Others]:
    """Open the additional bills of a tenant."""
    with ExitStack() as opened:
        yield {
            bill: opened.enter_context(
                bill.ecosystem.open(replace(context, currency=bill.currency, bill_only=True), bill.plugin_settings)
            )
            for bill in tenant.additional_bills
        }
