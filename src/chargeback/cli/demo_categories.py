"""The demo's cost categories, written as `chargeback categories apply` writes them."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.cli.demo_tags import KEY as TEAM
from chargeback.demo.categories import COST_CENTER, CategoryFacts, UndecidedCost
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import UNASSIGNED, UNTAGGED
from chargeback.reports.categories.editing import save_categories
from chargeback.store.control.cost_categories import last_version
from chargeback.store.control.inventory import read_inventory
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import CategoryFilter, Selection
from chargeback.store.tenant import open_store

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.store.tenant import TenantStore

_REASON: Final = "The cost categories of the demo"
_UNASSIGNED: Final = CategoryFilter(COST_CENTER, frozenset({UNASSIGNED}))


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
    """Return the categories; what the rules for all leave unassigned decides whose owners are asked."""
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
        total, _ = _costs(reader, selection)
        _, undecided = _costs(with_rules, replace(selection, categories=(_UNASSIGNED,)))
    names = {each.identity_id: each.display_name or "" for each in inventory.identities}
    return list(_parsed(facts.with_answers(seed, undecided, total, names)).values())


def _parsed(facts: CategoryFacts, *, with_tags: bool = True) -> dict[str, CostCategory]:
    return {key: parse_category(key, each) for key, each in facts.documents(with_tags=with_tags).items()}


def _costs(reader: TenantReader, selection: Selection) -> tuple[Decimal, list[UndecidedCost]]:
    """Return the total of the selected rows, and what each identity has of it."""
    grouping = Grouping(("identity_id", f"tag:{TEAM}"), "month", ZoneInfo("UTC"))
    found = reader.aggregate(CHARGEBACKS, selection, grouping)
    costs: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for bucket in found.buckets:
        identity, team = bucket["dimensions"].values()
        costs[identity, team] += Decimal(bucket["total_amount"])
    by_identity = [UndecidedCost(identity, cost, team != UNTAGGED) for (identity, team), cost in costs.items()]
    return Decimal(found.totals["total_amount"]), by_identity
