"""What people have done in the demo: its tags, cost categories, budgets, an announced load test, and closed months.

Everything is written as the commands and the API write it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.cli.closing import close_month
from chargeback.cli.statements import opened
from chargeback.demo.categories import COST_CENTER, CategoryFacts, UndecidedCost
from chargeback.demo.people import team_of
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import FORECAST, Budget, Threshold
from chargeback.model.cents import rounded_cents
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import NO_VALUES, UNASSIGNED, UNTAGGED
from chargeback.model.money import total
from chargeback.reports.categories.editing import save_categories
from chargeback.reports.closing.adjusting import adjust
from chargeback.reports.closing.close import ClosingOrder
from chargeback.reports.closing.preview import PeriodItem, list_periods
from chargeback.reports.closing.statements import statements_of
from chargeback.reports.tenant_view import open_tenant
from chargeback.store.control import tags
from chargeback.store.control.adjustments import NewAdjustment
from chargeback.store.control.anomalies import MarkedDays, add_mark, read_marks
from chargeback.store.control.budgets import last_version as last_budget
from chargeback.store.control.budgets import write_budget
from chargeback.store.control.catalogue import touch
from chargeback.store.control.cost_categories import last_version
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.invoices import Invoice, save_invoice
from chargeback.store.control.statement_replies import DISPUTED, StatementKey, add_reply
from chargeback.store.control.tags import IDENTITY, TagWrite
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import CategoryFilter, Selection
from chargeback.store.queries.sums import sums_by
from chargeback.store.tenant import open_store

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.demo.traffic import Burst
    from chargeback.model.days import Clock
    from chargeback.store.queries.reader import TenantReader
    from chargeback.store.tenant import TenantStore


KEY: Final = "team"
_PAYERS: Final = frozenset({"identity_pool", "service_account", "user"})

_REASON: Final = "The cost categories of the demo"
_UNASSIGNED: Final = CategoryFilter(COST_CENTER, frozenset({UNASSIGNED}))

_ALL: Final = "all"
_BY: Final = f"category:{COST_CENTER}"
_MONTH: Final = 30
_THRESHOLDS: Final = (Threshold("actual", Decimal(80)), Threshold(FORECAST, Decimal(100)))

_WHO: Final = "demo"
_MONTHS: Final = 2
#: How long before the end of the last closed month the day with a growing bill is: each run fetches it again.
_LATE: Final = timedelta(days=2)
#: When the provider sends its invoice after the end of a month, and by when it is to be paid.
_INVOICED: Final = timedelta(days=4)
_DUE: Final = timedelta(days=34)
_MOVED: Final = Decimal("250.00")


def tag_teams(tenant: Tenant, seed: int, *, with_principals: bool = False) -> None:
    """Tag most identities of the demo with their teams; do nothing if the tenant already has tags. Principals that only
    the metrics name are tagged if nothing else names identities.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    store = open_store(tenant)
    try:
        with store.control.write() as connection:
            if tags.revision(connection):
                return
            types = _PAYERS | {"principal"} if with_principals else _PAYERS
            people = [each for each in read_inventory(connection).identities if each.identity_type in types]
            teams = {each.identity_id: team_of(seed, each.identity_id, each.display_name or "") for each in people}
            writes = [TagWrite(IDENTITY, who, KEY, team) for who, team in sorted(teams.items()) if team is not None]
            tags.write_many(connection, store.tenant_id, writes, created_by="demo", override=False)
    finally:
        store.close()


def apply_demo_categories(tenant: Tenant, seed: int) -> None:
    """Write the demo's cost categories, except those that the tenant has or had; none if it has no costs yet.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    with closing(open_store(tenant)) as store:
        with store.control.read() as connection:
            if last_version(connection, COST_CENTER) is not None:
                return
        categories = _categories(store, seed)
        with store.control.write(durable=True) as connection:
            new = [each for each in categories if last_version(connection, each.key) is None]
            save_categories(connection, new, who="demo", reason=_REASON)


def _categories(store: TenantStore, seed: int) -> list[CostCategory]:
    """Return the categories. The costs that the rules leave unassigned decide which owners are asked."""
    with store.control.read() as connection:
        inventory = read_inventory(connection)
    caches = LookupCaches()
    with closing(QueryEngine()) as engine, open_reader(engine, store, CancellationToken(), caches) as reader:
        days = reader.dates(CHARGEBACKS)
        if not days:
            return []
        facts = CategoryFacts.of(inventory, days[0], days[-1])
        index = reader.categories.index.including(COST_CENTER, _parsed(facts, with_tags=False)[COST_CENTER])
        with_rules = reader.with_categories(caches.categories(store, index, reader.tags))
        selection = Selection.of_days(DayRange(days[0], days[-1] + ONE_DAY))
        whole, _ = _costs(reader, selection)
        _, undecided = _costs(with_rules, replace(selection, categories=(_UNASSIGNED,)))
    names = {each.identity_id: each.display_name or "" for each in inventory.identities}
    return list(_parsed(facts.with_answers(seed, undecided, whole, names)).values())


def _parsed(facts: CategoryFacts, *, with_tags: bool = True) -> dict[str, CostCategory]:
    return {key: parse_category(key, each) for key, each in facts.documents(with_tags=with_tags).items()}


def _costs(reader: TenantReader, selection: Selection) -> tuple[Decimal, list[UndecidedCost]]:
    """Return the total of the selected rows, and what each identity has of it."""
    costs = sums_by(reader, CHARGEBACKS, selection, ("identity_id", f"tag:{KEY}"))
    by_identity = [UndecidedCost(identity or "", cost, team != UNTAGGED) for (identity, team), cost in costs.items()]
    return total(costs.values()), by_identity


def write_demo_budgets(tenant: Tenant) -> None:
    """Write the demo's budgets, unless the tenant has or had them, or has no costs yet.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    with open_tenant(tenant) as (view, reader, _):
        with view.store.control.read() as connection:
            if last_budget(connection, _ALL) is not None:
                return
        budgets = _budgets(reader)
        with view.store.control.write() as connection:
            for each in budgets:
                write_budget(connection, each.id, each, expected=None, who="demo", reason="The budgets of the demo")


def announce_load_test(tenant: Tenant, test: Burst) -> None:
    """Say that the load test was planned, before anything is known of it, unless that was said before.

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


@dataclass(frozen=True)
class ClosedMonths:
    """What was closed: the months, and the day of the last one whose bill grows afterwards."""

    periods: tuple[AccountingPeriod, ...]
    late_bill: date


def close_demo_months(tenant: Tenant, now: Clock) -> ClosedMonths | None:
    """Close the last month that is complete and the one before it, if the days of the demo reach back to them; return
    None if a month was closed before, or none is complete.

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
        if each.blockers:  # the demo begins within its first month, and the days before it are never billed
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
