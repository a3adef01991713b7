"""A tenant whose sources a test defines: the provider's bills and lists, and the metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.policies import Policy, PolicyCatalogue, parse_policies
from chargeback.config import load_configuration
from chargeback.ecosystems.confluent_cloud import ConfluentCloud
from chargeback.ecosystems.confluent_cloud.usage import usage_table
from chargeback.ecosystems.contract import Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.ecosystems.settings import PluginSettings
from chargeback.errors import SourceError
from chargeback.model.billing import BillingLine
from chargeback.model.days import Clock, DayRange
from chargeback.model.inventory import GRANT, Identity, Inventory, ListedInventory, Resource
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run import run_tenant
from chargeback.pipeline.run_messages import RunResult, StopSignal
from chargeback.store.control.days import DayState, read_day_state
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, read_day
from tests.support.clock import TODAY, FixedClock
from tests.support.databases import open_migrated

#: The newest day of the window.
DAY = TODAY - timedelta(days=6)
RECALCULATE = RunRequest(recalculate=True)

#: Measure → (resource, subject) → value.
Totals = Mapping[str, Mapping[tuple[str, str], int]]

_CONFIGURATION = """
tenants:
  acme:
    ecosystem: confluent_cloud
    tenant_id: acme-id
    lookback_days: {lookback}
    cutoff_days: 5
    allocation_retry_limit: 1
    topic_attribution_retry_limit: 1
    storage: {{connection_string: "sqlite:///{folder}/acme.db"}}
    plugin_settings:
      ccloud_api: {{key: key, secret: secret}}
      metrics: {{url: "http://127.0.0.1:9"}}
      topic_attribution: {{enabled: true}}
"""


def line(cost: str, *, resource: str = "lkc-1", product: str = "KAFKA_NETWORK_WRITE", **more: Any) -> BillingLine:
    """Return a line of :data:`DAY`, or of another ``day``."""
    day = more.pop("day", DAY)
    return BillingLine(
        day=day,
        timestamp=datetime.combine(day, time(), UTC),
        resource_id=resource,
        resource_type=more.pop("resource_type", "kafka_cluster"),
        product_category="KAFKA",
        product_type=product,
        total_cost=Decimal(cost),
        currency="USD",
        **more,
    )


@dataclass
class Sources:
    """Implements :class:`chargeback.ecosystems.contract.Gatherer`.

    Attributes:
        lines: the bills, by day.
        listed: the complete listings.
        unlisted: the types that cannot be listed, and the reasons.
        required: the types whose failure fails a run.
        totals, topic_totals: the metrics of every day; ``totals_on`` replaces them on some days.
        fault: the error of the metrics, if any.
        asked: the number of queries of the metrics.
    """

    lines: dict[date, list[BillingLine]] = field(default_factory=dict)
    listed: Inventory = field(
        default_factory=lambda: Inventory(
            [Resource("lkc-1", "kafka_cluster")], [Identity(f"sa-{name}", "service_account") for name in "abc"]
        )
    )
    unlisted: dict[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    totals: Totals = field(default_factory=dict)
    topic_totals: Totals = field(default_factory=dict)
    totals_on: dict[date, Totals] = field(default_factory=dict)
    fault: SourceError | None = None
    asked: int = 0

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        for day in days:
            yield GatheredDay(day, list(self.lines.get(day, ())))

    def inventory(self) -> ListedInventory:
        seen = [each for each in self.listed.resources if each.resource_type not in self.unlisted]
        identities = [each for each in self.listed.identities if each.identity_type not in self.unlisted]
        types = {each.resource_type for each in seen} | {each.identity_type for each in identities}
        types |= {GRANT} if self.listed.grants else set()
        return ListedInventory(
            Inventory(seen, identities, self.listed.grants),
            frozenset(types),
            failures=dict(self.unlisted),
            required=self.required,
        )

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        known = {resource.resource_id for resource in inventory.resources}
        return MeasuredUsage(self._answer(day, self.totals_on.get(day, self.totals)).filter(_are(known)))

    def topics(self, day: date) -> MeasuredUsage:
        return MeasuredUsage(self._answer(day, self.topic_totals))

    def check(self) -> Iterator[Finding]:
        return iter(())

    def _answer(self, day: date, totals: Totals) -> pa.Table:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return usage_table(day, {name: {k: Decimal(v) for k, v in each.items()} for name, each in totals.items()})


def _are(resources: set[str]) -> Any:
    return pc.field("resource_id").isin(sorted(resources))


@dataclass(frozen=True)
class Scripted(ConfluentCloud):
    """An ecosystem with sources that a test defines."""

    sources: Sources = field(default_factory=Sources)
    shipped: Mapping[str, Policy] = field(default_factory=dict)

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        own = parse_policies(settings.allocation_policies, "allocation_policies")
        changed = {name: policy for name, policy in self.shipped.items() if name not in own}
        return super().tenant_catalogue(settings).override(changed)

    def open(self, context: TenantContext, settings: Any) -> Any:
        return nullcontext(self.sources)


class Laboratory:
    """A tenant with such sources and its own storage; runs are in this process. A context manager.

    ``days`` is the length of its window, which ends with :data:`DAY`. With ``measured``, its bills are constructed from
    measurements.
    """

    def __init__(self, folder: Path, *, days: int = 1, measured: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "chargeback.yaml"
        file.write_text(_CONFIGURATION.format(folder=folder, lookback=5 + days))
        self.sources = Sources()
        tenant = load_configuration(file).tenants["acme"]
        capabilities = replace(tenant.ecosystem.capabilities, constructs_costs=measured)
        self.tenant = replace(tenant, ecosystem=Scripted(capabilities=capabilities, sources=self.sources))
        self.store = open_migrated(self.tenant)
        self.clock: Clock = FixedClock()

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def share(self, days: Iterable[date]) -> None:
        """Bill days, each with usage of two identities in the ratio 3 to 1."""
        self.sources.lines = {day: [line("100", day=day)] for day in days}
        shares = {("lkc-1", "sa-a"): 3, ("lkc-1", "sa-b"): 1}
        self.sources.totals = {name: dict(shares) for name in ("bytes_in", "bytes_out")}

    def rows(self) -> dict[date, bytes]:
        """Return the content of the chargeback files by day."""
        files = self.store.facts.snapshot(CHARGEBACKS_TABLE).files
        return {file.day: Path(file.path).read_bytes() for file in files if file.day is not None}

    def configure(self, **settings: object) -> None:
        """Change settings of the tenant for the following runs."""
        self.tenant = replace(self.tenant, settings=self.tenant.settings.model_copy(update=settings))

    def set_policies(self, policies: object) -> None:
        """Set the tenant's own policies."""
        settings = self.tenant.plugin_settings
        changed = type(settings).model_validate({**settings.model_dump(), "allocation_policies": policies})
        self.tenant = replace(self.tenant, plugin_settings=changed)

    def ship(self, policies: Mapping[str, object]) -> None:
        """Simulate an upgrade to an ecosystem that ships other policies for some product types."""
        shipped = dict(parse_policies(policies, "policies"))
        ecosystem = cast(Scripted, self.tenant.ecosystem)
        catalogue = ecosystem.catalogue.override(shipped)
        self.tenant = replace(self.tenant, ecosystem=replace(ecosystem, catalogue=catalogue, shipped=shipped))

    def run(self, request: RunRequest | None = None) -> RunResult:
        """Run once."""
        lease = self.store.acquire(LeaseOwner.this_process())
        return run_tenant(
            self.tenant,
            self.store,
            lease,
            request or RunRequest(),
            stop=StopSignal(),
            listener=lambda _: None,
            clock=self.clock,
        )

    def state(self, day: date = DAY) -> DayState:
        """Return the state of a day."""
        with self.store.control.read() as connection:
            return read_day_state(connection, day)

    def stored(self, table: str, day: date = DAY) -> pa.Table:
        """Return the stored rows of a day."""
        return read_day(self.store.facts, table, day)

    def charged(self, day: date = DAY) -> dict[str, str]:
        """Return the charged amount by identity."""
        sums: dict[str, Decimal] = {}
        for row in self.stored(CHARGEBACKS_TABLE, day).to_pylist():
            sums[row["identity_id"]] = sums.get(row["identity_id"], Decimal(0)) + row["amount"]
        return {who: f"{amount.normalize():f}" for who, amount in sums.items()}
