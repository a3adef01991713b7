"""Gathers the data of a self-managed cluster: its bill from rates and measurements, its inventory, its usage."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from functools import partial

from chargeback.ecosystems.constructed.admin import open_admin
from chargeback.ecosystems.constructed.bill import LineDefaults, gather
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.self_managed_kafka.bill import DailyCharges
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.check import Checks
from chargeback.ecosystems.self_managed_kafka.inventory import ClusterInventory
from chargeback.ecosystems.self_managed_kafka.policies import tenant_catalogue
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings
from chargeback.ecosystems.self_managed_kafka.usage import ClusterUsage
from chargeback.model.inventory import KAFKA_CLUSTER
from chargeback.sources.prometheus import PrometheusClient


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
