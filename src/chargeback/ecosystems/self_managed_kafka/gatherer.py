"""Gathers the data of a self-managed cluster: its bill from rates and measurements, its inventory, its usage."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from functools import partial

from chargeback.ecosystems.constructed.bill import LineDefaults, gather
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.self_managed_kafka.bill import DailyCharges
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.check import Checks
from chargeback.ecosystems.self_managed_kafka.inventory import KAFKA_CLUSTER, ClusterInventory, connection
from chargeback.ecosystems.self_managed_kafka.policies import tenant_catalogue
from chargeback.ecosystems.self_managed_kafka.settings import ResourceSource, SelfManagedKafkaSettings
from chargeback.ecosystems.self_managed_kafka.usage import ClusterUsage
from chargeback.sources.kafka_admin import INTERACTIVE_TIMEOUT_SECONDS, TIMEOUT_SECONDS, KafkaAdmin
from chargeback.sources.prometheus import PrometheusClient


def open_cluster(context: TenantContext, settings: SelfManagedKafkaSettings) -> ConstructedGatherer:
    """Start work for the tenant of this cluster."""
    connections = ExitStack()
    client = connections.enter_context(
        PrometheusClient(settings.metrics, stop=context.stop, interactive=context.is_awaited)
    )
    meter = Meter(client, timedelta(seconds=settings.metrics_step_seconds))
    metrics = BrokerMetrics(settings)
    admin = _admin(context, settings.resource_source)
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


def _admin(context: TenantContext, source: ResourceSource) -> KafkaAdmin | None:
    """Return the cluster's admin API if it lists brokers and topics, with a short timeout if a person waits."""
    if source.source != "admin_api":
        return None
    timeout = INTERACTIVE_TIMEOUT_SECONDS if context.is_awaited else TIMEOUT_SECONDS
    return KafkaAdmin(connection(source), stop=context.stop, timeout_seconds=timeout)
