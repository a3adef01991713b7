"""Gathers the data of a tenant whose bill is files: the bill from these, the rest from the user's queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from chargeback.ecosystems.constructed.admin import open_admin
from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.constructed.settings import PRINCIPAL
from chargeback.ecosystems.constructed.system import QueriedSystem
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.ecosystems.findings import CheckWarning, attempt
from chargeback.ecosystems.focus_files.bill import OWNED_PART, FocusBill
from chargeback.ecosystems.focus_files.files import open_files
from chargeback.ecosystems.focus_files.settings import FocusFilesSettings, tenant_catalogue
from chargeback.errors import SourceError
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import KAFKA_CLUSTER, Identity, Inventory, ListedInventory, Resource

#: How many services, resources or product types a check names.
_NAMED: Final = 12
#: How far back ``check --online`` looks, in days.
_CHECKED_DAYS: Final = 35
#: How far back identities are listed, in days: the longest range that a tenant can have.
_LISTED_DAYS: Final = 365


def open_bill(context: TenantContext, settings: FocusFilesSettings) -> ConstructedGatherer:
    """Start work for the tenant of these files."""
    connections = ExitStack()
    queries = {measure: each.query for measure, each in settings.usage.items()}
    system = QueriedSystem(context, settings, KAFKA_CLUSTER, connections, queries=queries, summed=queries)
    bill = FocusBill(context, settings, open_files(context, settings.bill))
    admin = None if context.bill_only else open_admin(context, settings.resource_source)
    used = tenant_catalogue(settings).measures
    measures = {name: each for name, each in settings.measures.items() if name in used}
    return ConstructedGatherer(
        connections,
        bill_of=bill.days,
        usage_of=partial(system.usage, queries=measures),
        listing=lambda: _with_payers(context, settings, bill, system.inventory(admin)),
        checks=lambda: chain(_checks(context, settings, bill), () if context.bill_only else system.check(admin)),
    )


def _with_payers(
    context: TenantContext, settings: FocusFilesSettings, bill: FocusBill, listed: ListedInventory
) -> ListedInventory:
    """Return the inventory with the identities that the files name, and with what each of them pays as a resource that
    it owns. If the files cannot be read, nothing is said about these."""
    if settings.bill.identity is None:
        return listed
    try:
        payers = bill.payers(DayRange(context.today - _LISTED_DAYS * ONE_DAY, context.today + ONE_DAY))
    except SourceError as error:
        return replace(listed, failures={**listed.failures, OWNED_PART: str(error)})
    known = {each.identity_id for each in listed.inventory.identities}
    new = sorted({identity for _, identity in payers} - known)
    inventory = Inventory(
        [
            *listed.inventory.resources,
            *(Resource(part, OWNED_PART, parent_id=settings.cluster_id, owner_id=payer) for part, payer in payers),
        ],
        [*listed.inventory.identities, *(Identity(each, PRINCIPAL, each, metadata={"source": "bill"}) for each in new)],
        listed.inventory.grants,
    )
    listed_in_part = frozenset({OWNED_PART, PRINCIPAL})
    return replace(
        listed,
        inventory=inventory,
        complete=listed.complete - listed_in_part,
        partial=(listed.partial | listed_in_part) - listed.failures.keys(),
    )


def _checks(context: TenantContext, settings: FocusFilesSettings, bill: FocusBill) -> Iterator[Finding]:
    """Yield what the files have, what the filter leaves of it, and the product types without a policy."""
    files = attempt("bill files", bill.describe)
    yield files
    if not files.ok:
        return
    days = DayRange(context.today - _CHECKED_DAYS * ONE_DAY, context.today + ONE_DAY)

    def services() -> str | CheckWarning:
        kept, out = bill.services(days)
        if not kept:
            seen = f"the services are {_named(out)}" if out else "the files have no row of these days"
            return CheckWarning(f"the filter leaves nothing of the last {_CHECKED_DAYS} days: {seen}")
        left = ", ".join(f"{name} {cost:f}" for name, cost in list(kept.items())[:_NAMED])
        return f"{left} {context.currency}" + (f"; left out: {_named(out)}" if out else "")

    known = tenant_catalogue(settings).on(context.today)

    def policies() -> str | CheckWarning:
        types = sorted({line.product_type for day in bill.days(days) for line in day.lines})
        missing = [name for name in types if known.find(name) is None]
        if missing:
            return CheckWarning(f"no policy for {_named(missing)}: their costs remain unallocated")
        return f"all {len(types)} product types of the last {_CHECKED_DAYS} days have a policy"

    yield attempt("bill services", services)
    if not context.bill_only:
        yield attempt("bill policies", policies)


def _named(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more
