"""The demo's summary of a tenant: who spent what, on what, and that it is the bill to the last digit."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import typer

from chargeback.cli.display import money_table
from chargeback.model.days import instants
from chargeback.model.money import total
from chargeback.pipeline.verify import CALCULATED, DayCheck, verify
from chargeback.store.queries.aggregate import CHARGEBACKS, Grouping, aggregate
from chargeback.store.queries.engine import QueryEngine, Question
from chargeback.store.queries.scan import Condition
from chargeback.store.queries.tags import TagBook
from chargeback.store.tenant import TenantStore, open_store

if TYPE_CHECKING:
    from chargeback.config import Tenant

#: How many identities and product types are shown; the rest is one line.
SHOWN = 10


@dataclass(frozen=True)
class Summary:
    """What one tenant's stored days say. Amounts are exact; the largest come first."""

    tenant: str
    currency: str
    days: tuple[DayCheck, ...]
    by_identity: tuple[tuple[str, Decimal], ...]
    by_product: tuple[tuple[str, Decimal], ...]

    @property
    def billed(self) -> Decimal:
        """The bill of all calculated days."""
        return total([day.billing for day in self.days])

    @property
    def charged(self) -> Decimal:
        """What was charged for them."""
        return total([day.chargebacks for day in self.days])


def summarise(tenant: Tenant) -> Summary:
    """The calculated days of a tenant, asked of the same store and queries as the API.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    store = open_store(tenant)
    engine = QueryEngine()
    try:
        days = tuple(day for day in verify(store) if day.state == CALCULATED)
        groups = [_grouped(engine, store, days, column) for column in ("identity_id", "product_type")]
        return Summary(tenant.name, tenant.settings.currency, days, *groups)
    finally:
        engine.close()
        store.close()


def _grouped(
    engine: QueryEngine, store: TenantStore, days: tuple[DayCheck, ...], column: str
) -> tuple[tuple[str, Decimal], ...]:
    if not days:
        return ()
    grouping = Grouping((column,), "month", ZoneInfo("UTC"))
    with engine.asking(Question()) as cursor:
        window = instants(days[0].day, days[-1].day)
        found = aggregate(cursor, store.facts, CHARGEBACKS, window, grouping, Condition(), TagBook())
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for bucket in found.buckets:
        amounts[bucket["dimensions"][column]].append(Decimal(bucket["total_amount"]))
    sums = [(name, total(parts)) for name, parts in amounts.items()]
    return tuple(sorted(sums, key=lambda pair: (-pair[1], pair[0])))


def print_summary(summary: Summary) -> None:
    """The largest identities and product types, and both totals, digit by digit."""
    if not summary.days:
        typer.echo(f"tenant {summary.tenant}: no day is calculated yet")
        return
    period = f"{summary.days[0].day} to {summary.days[-1].day}"
    money_table(f"Cost by identity, {period}", "identity", _largest(summary.by_identity), summary.currency)
    money_table(f"Cost by product type, {period}", "product type", _largest(summary.by_product), summary.currency)
    same = "the same to the last digit" if summary.billed == summary.charged else "NOT THE SAME"
    rows = (
        ("billed", summary.billed),
        ("charged", summary.charged),
        ("of it by identity", total([amount for _, amount in summary.by_identity])),
    )
    money_table(f"{len(summary.days)} days: {same}", "total", rows, summary.currency)


def _largest(amounts: tuple[tuple[str, Decimal], ...]) -> list[tuple[str, Decimal]]:
    shown, rest = list(amounts[:SHOWN]), amounts[SHOWN:]
    if rest:
        shown.append((f"{len(rest)} others", total([amount for _, amount in rest])))
    return shown
