"""Gathers the data of a self-managed cluster: its bill from rates and measurements, its inventory, its usage.

The bill has brokers, storage, and traffic in and out; the inventory has the cluster, its brokers, topics and users. The
policies are those of ``policies.yaml`` next to this file, with a tenant's changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files
from typing import Any

import yaml

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.ecosystems.constructed.admin import KAFKA_BROKER, KAFKA_TOPIC, describe, list_parts, open_admin, part
from chargeback.ecosystems.constructed.bill import (
    Charge,
    LineDefaults,
    coverage,
    for_hours,
    gather,
    gib,
    gib_hours,
    measured,
)
from chargeback.ecosystems.constructed.identities import InventoryBuilder, list_discovered, list_static, recently_seen
from chargeback.ecosystems.constructed.meter import Meter, Reading, Shares
from chargeback.ecosystems.constructed.plugin import ConstructedGatherer, measured_usage, series_of
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.constructed.settings import PRESENCE
from chargeback.ecosystems.contract import Finding, MeasuredUsage, TenantContext
from chargeback.ecosystems.findings import Check, CheckWarning, attempt, attempt_all
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.settings import TRAFFIC, PricedKind, SelfManagedKafkaSettings
from chargeback.errors import SourceDataError
from chargeback.model.days import Clock
from chargeback.model.inventory import KAFKA_CLUSTER, ListedInventory, Resource
from chargeback.sources.kafka_admin import KafkaAdmin
from chargeback.sources.prometheus import PrometheusClient

CATEGORY = "KAFKA"
COMPUTE = "SELF_KAFKA_COMPUTE"
STORAGE = "SELF_KAFKA_STORAGE"
INGRESS = "SELF_KAFKA_NETWORK_INGRESS"
EGRESS = "SELF_KAFKA_NETWORK_EGRESS"


class DailyCharges:
    """Measures and prices days. Quantities with a rate of zero are neither measured nor billed."""

    def __init__(self, settings: SelfManagedKafkaSettings, metrics: BrokerMetrics, meter: Meter) -> None:
        self._broker_count = settings.broker_count
        self._rates = settings.rates
        self._kinds = settings.rates.of_kinds()
        self._metrics = metrics
        self._meter = meter

    def of(self, day: date) -> list[Charge]:
        """Return the charges of the day.

        Raises:
            SourceDataError: the day has no sample of a billed quantity.
            SourceError: as for :class:`Meter`.
        """
        return list(self._charges(day))

    def _charges(self, day: date) -> Iterator[Charge]:
        if rate := self._rates.compute_hourly_rate:
            yield Charge(CATEGORY, COMPUTE, for_hours(self._broker_count), "broker-hour", rate)
        for kind in self._kinds:
            if rate := kind.rates.storage_per_gib_hourly:
                query = with_step(self._metrics.mean_log_size(kind.matcher), self._meter.step)
                stored = measured(self._meter.mean(query, day), self._metrics.log_size())
                product = kind.product_type(STORAGE)
                yield Charge(CATEGORY, product, gib_hours(stored), "GiB-hour", rate, coverage(stored))
            for base, metric, rate in (
                (INGRESS, "bytes_in", kind.rates.network_ingress_per_gib),
                (EGRESS, "bytes_out", kind.rates.network_egress_per_gib),
            ):
                if rate:
                    yield Charge(CATEGORY, kind.product_type(base), gib(self._traffic(metric, kind, day)), "GiB", rate)

    def _traffic(self, metric: str, kind: PricedKind, day: date) -> Reading:
        """Return the bytes of a kind of topics: none if only topics of other kinds had traffic."""
        found = self._meter.increase(self._metrics.traffic(metric, kind.matcher), day)
        if found is not None:
            return found
        counters = self._metrics.traffic(metric)
        everything = self._meter.increase(counters, day) if kind.matcher else None
        return replace(measured(everything, counters), value=Fraction(0))


def catalogue() -> PolicyCatalogue:
    """Return the built-in policies."""
    return PolicyCatalogue(parse_policies(_document(), "policies"), {})


def tenant_catalogue(settings: SelfManagedKafkaSettings) -> PolicyCatalogue:
    """Return the policies with the changes of a tenant's ``allocation_policies``. What a kind of topics costs is split
    as the same costs of all topics, by the traffic of the kind."""
    by_kind = [_of_kind(kind) for kind in settings.rates.of_kinds()]
    built_in = _document() | {name: policy for each in by_kind for name, policy in each.items()}
    own = parse_policies(settings.allocation_policies, "allocation_policies")
    return PolicyCatalogue(parse_policies(built_in, "policies"), {}).override(own)


@cache
def _document() -> dict[str, Any]:
    document = yaml.safe_load((files(__package__) / "policies.yaml").read_text("utf-8"))
    policies: dict[str, Any] = document["policies"]
    return policies


def _of_kind(kind: PricedKind) -> dict[str, Any]:
    return {
        kind.product_type(product_type): {
            "portions": [
                {"share": portion["share"], "try": _methods(portion["try"], kind)} for portion in policy["portions"]
            ]
        }
        for product_type, policy in _document().items()
        if product_type != COMPUTE
    }


def _methods(methods: Sequence[str], kind: PricedKind) -> list[str]:
    of_kind = {f"usage({base})": f"usage({kind.measure(base)})" for base in TRAFFIC}
    return [of_kind.get(method, method) for method in methods]


@dataclass(frozen=True)
class _Cluster:
    """One cluster and its sources; ``admin`` is its admin API, if that is the source of brokers and topics."""

    settings: SelfManagedKafkaSettings
    metrics: BrokerMetrics
    client: PrometheusClient
    admin: KafkaAdmin | None
    now: Clock


class ClusterInventory(_Cluster):
    """Lists one cluster."""

    def gather(self) -> ListedInventory:
        """Return the present inventory. Brokers and topics that cannot be listed remain as they are stored."""
        settings, listing = self.settings, InventoryBuilder()
        listing.resources.append(self._cluster())
        listing.complete.add(KAFKA_CLUSTER)
        listing.attempt([KAFKA_BROKER, KAFKA_TOPIC], lambda: self._parts(listing))
        source = settings.identity_source
        if source.static_identities:
            list_static(listing, source, settings.cluster_id)
        if source.uses_metrics:
            query = source.discovery_query or self.metrics.principals("{step}")
            list_discovered(listing, source, self.client, query, settings.principal_label, self.now)
        return listing.listed(required=[KAFKA_CLUSTER])

    def _cluster(self) -> Resource:
        settings = self.settings
        name = settings.display_name or settings.cluster_id
        metadata = {"region": settings.region, "broker_count": settings.broker_count}
        return Resource(settings.cluster_id, KAFKA_CLUSTER, name, metadata=metadata)

    def _parts(self, listing: InventoryBuilder) -> None:
        if self.admin is None:
            self._by_metrics(listing)
        else:
            list_parts(listing, self.admin, self.settings.cluster_id)

    def _by_metrics(self, listing: InventoryBuilder) -> None:
        hours = f"{self.settings.identity_source.discovery_window_hours}h"
        labels = self.settings.label_names
        brokers = self._values(self.metrics.brokers(hours), labels.broker)
        topics = self._values(self.metrics.topics(hours), labels.topic)
        listing.resources += [part(self.settings.cluster_id, KAFKA_BROKER, name) for name in brokers]
        listing.resources += [part(self.settings.cluster_id, KAFKA_TOPIC, name) for name in topics]

    def _values(self, query: str, label: str) -> list[str]:
        found = (sample.labels.get(label) for sample in self.client.instant(query, self.now()))
        return sorted({name for name in found if name})


class ClusterUsage:
    """Measures the bytes of each principal and, with a discovery query, which principals were present.

    Present principals are active: with a discovery query, the even parts of the bill are shared by all that it found
    that day.
    """

    def __init__(
        self, settings: SelfManagedKafkaSettings, metrics: BrokerMetrics, meter: Meter, measures: Collection[str]
    ) -> None:
        source = settings.identity_source
        self._cluster_id = settings.cluster_id
        self._metrics = metrics
        self._meter = meter
        self._bytes = {name: counted for name, counted in settings.measures.items() if name in measures}
        given = source.discovery_query if source.uses_metrics else None
        needed = metrics.principals("{step}") if PRESENCE in measures else None
        self._presence = given or needed

    def of(self, day: date) -> MeasuredUsage:
        """Return every measure over the day."""
        label = self._metrics.principal_label
        measures = {measure: self._measure(*counted, day) for measure, counted in self._bytes.items()}
        if self._presence:
            query = with_step(self._presence, self._meter.step)
            measures[PRESENCE] = self._meter.presence(query, label, day)
        return measured_usage(day, self._cluster_id, measures)

    def _measure(self, metric: str, of_kind: str, day: date) -> Shares:
        label = self._metrics.principal_label
        if self._metrics.counts_principals:
            return self._meter.increase_by(self._metrics.traffic(metric, of_kind), label, day)
        query = self._metrics.principal_bytes(metric, self._meter.step)
        return self._meter.total_by(query, label, day)


class Checks(_Cluster):
    """Sends one small request of each kind."""

    def run(self) -> Iterator[Finding]:
        """Yield one finding per metric and source. If the metrics source cannot be reached, or refuses its key, yield
        one finding for that, and one that names the checks that were skipped."""
        queries = {name: self.metrics.traffic(name) for name in ("bytes_in", "bytes_out")}
        queries["log_size"] = self.metrics.log_size()
        checks: dict[str, Check] = {
            f"metric {name}": partial(series_of, self.client, query, self.now) for name, query in queries.items()
        }
        checks["brokers"] = self._brokers
        if self.settings.identity_source.uses_metrics:
            checks["principals"] = self._principals
        yield from attempt_all(checks, lambda: self.client.given_up)
        if self.admin is not None:
            yield attempt("admin API", partial(describe, self.admin))

    def _brokers(self) -> str | CheckWarning:
        found = len(self.client.instant(self.metrics.brokers("1h"), self.now()))
        configured = self.settings.broker_count
        if not found:
            raise SourceDataError("the metrics contain no broker", source="metrics")
        if found != configured:
            return CheckWarning(f"the metrics contain {found} brokers, but broker_count bills {configured}")
        return f"{found} brokers, as broker_count says"

    def _principals(self) -> str:
        source, label = self.settings.identity_source, self.metrics.principal_label
        query = source.discovery_query or self.metrics.principals("{step}")
        hours = source.discovery_window_hours
        found = recently_seen(self.client, query, label, hours, self.now)
        if not found:
            raise SourceDataError(
                f"no series with the label {label} within {hours} h: the rule files of the JMX exporter give byte"
                " counters no principal; with quotas, metric_names.principals: quotas takes the gauges per user"
            )
        return f"{len(found)} within {hours} h"


def open_cluster(context: TenantContext, settings: SelfManagedKafkaSettings) -> ConstructedGatherer:
    """Start work for the tenant of this cluster."""
    connections = ExitStack()
    client = connections.enter_context(
        PrometheusClient(settings.metrics, stop=context.stop, interactive=context.is_awaited)
    )
    meter = Meter(client, timedelta(seconds=settings.metrics_step_seconds))
    metrics = BrokerMetrics(settings)
    admin = open_admin(context, settings.resource_source)
    return ConstructedGatherer(
        connections,
        bill_of=partial(
            gather,
            charges=DailyCharges(settings, metrics, meter).of,
            defaults=LineDefaults.of(settings, KAFKA_CLUSTER, context.currency),
        ),
        usage_of=ClusterUsage(settings, metrics, meter, tenant_catalogue(settings).measures).of,
        listing=ClusterInventory(settings, metrics, client, admin, context.now).gather,
        checks=Checks(settings, metrics, client, admin, context.now).run,
    )
