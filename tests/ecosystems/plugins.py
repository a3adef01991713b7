"""A small ecosystem; tests replace one result at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.ecosystems.contract import Capabilities, Finding, GatheredDay, Gatherer, MeasuredUsage, TenantContext
from chargeback.ecosystems.settings import PluginSettings
from chargeback.model.billing import BillingLine
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.model.inventory import Identity, Inventory, ListedInventory, Resource
from chargeback.model.topics import TopicPlan
from chargeback.model.usage import USAGE

POLICIES = {"THING": {"portions": [{"share": "1", "try": ["usage(requests)", "even(period)", "unallocated"]}]}}
CATALOGUE = PolicyCatalogue(parse_policies(POLICIES, "policies"), aliases={})
#: The days of the tests, and the day with a fault.
DAY = date(2026, 1, 2)
DAYS = DayRange(DAY, DAY + timedelta(days=3))
SECOND = DAY + ONE_DAY


def line(of: date, **more: Any) -> BillingLine:
    """Return a line of one dollar for a made-up resource."""
    known: dict[str, Any] = {
        "day": of,
        "timestamp": start_of_day(of),
        "resource_id": "thing-1",
        "resource_type": "thing",
        "product_category": "THINGS",
        "product_type": "THING",
        "total_cost": Decimal(1),
        "currency": "USD",
    }
    return BillingLine(**(known | more))


def row(day: date, **more: Any) -> dict[str, Any]:
    """Return ten requests of one team."""
    known = {"date": day, "measure": "requests", "resource_id": "thing-1", "subject": "web", "value": Decimal(10)}
    return known | more


def measured(*rows: dict[str, Any]) -> MeasuredUsage:
    """Return these rows as usage."""
    return MeasuredUsage(pa.Table.from_pylist(list(rows), schema=USAGE))


def listing(*, complete: Any = frozenset({"thing", "team"}), more: dict[str, Any] | None = None, **parts: Any) -> Any:
    """Return one resource and one identity."""
    known: dict[str, Any] = {"resources": [Resource("thing-1", "thing")], "identities": [Identity("web", "team")]}
    return ListedInventory(Inventory(**(known | parts)), complete, **(more or {}))


@dataclass
class TinyGatherer:
    """A gatherer whose methods call its replaceable functions."""

    on_billing: Callable[[DayRange], Any] = lambda days: (GatheredDay(day, [line(day)]) for day in days)
    on_inventory: Callable[[], Any] = listing
    on_usage: Callable[[date], Any] = lambda day: measured(row(day))
    on_topics: Callable[[date], Any] = lambda day: MeasuredUsage(USAGE.empty_table())
    on_check: Callable[[], Any] = lambda: iter([Finding("address", ok=True, detail="answers")])
    on_close: Callable[[], Any] = lambda: None

    def __enter__(self) -> TinyGatherer:
        return self

    def __exit__(self, *_: object) -> Any:
        return self.on_close()

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        return self.on_billing(days)  # type: ignore[no-any-return]

    def inventory(self) -> ListedInventory:
        return self.on_inventory()  # type: ignore[no-any-return]

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        return self.on_usage(day)  # type: ignore[no-any-return]

    def topics(self, day: date) -> MeasuredUsage:
        return self.on_topics(day)  # type: ignore[no-any-return]

    def check(self) -> Iterator[Finding]:
        return self.on_check()  # type: ignore[no-any-return]


@dataclass
class Tiny:
    """An ecosystem whose parts can be replaced."""

    on_open: Callable[..., Any] = lambda context, settings: TinyGatherer()
    name: Any = "tiny"
    capabilities: Any = field(default_factory=lambda: Capabilities(payer_tiers=(frozenset({"team"}),)))
    settings_model: Any = PluginSettings
    catalogue: Any = CATALOGUE
    on_catalogue: Callable[..., Any] = lambda settings: CATALOGUE
    on_topic_plan: Callable[..., Any] = lambda settings: None
    on_topic_settings: Callable[..., Any] = lambda settings: None

    def open(self, context: TenantContext, settings: Any) -> Any:
        return self.on_open(context, settings)

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        return self.on_catalogue(settings)  # type: ignore[no-any-return]

    def topic_settings(self, settings: PluginSettings) -> Any:
        return self.on_topic_settings(settings)

    def topic_plan(self, settings: PluginSettings) -> TopicPlan | None:
        return self.on_topic_plan(settings)  # type: ignore[no-any-return]


def context_for(folder: Path, today: date) -> TenantContext:
    """Return a tenant named ``it``."""
    return TenantContext("it", "it", "USD", today, Event(), str(folder), is_awaited=True)


def bill(gatherer: Gatherer) -> dict[date, GatheredDay]:
    """Return the last result of every day."""
    return {gathered.day: gathered for gathered in gatherer.billing(DAYS)}


def one_wrong_line(**wrong: Any) -> Callable[[DayRange], Iterator[GatheredDay]]:
    """Return days of two lines each; on the second day, the second line is wrong."""
    return lambda days: (GatheredDay(day, [line(day), line(day, **(wrong if day == SECOND else {}))]) for day in days)
