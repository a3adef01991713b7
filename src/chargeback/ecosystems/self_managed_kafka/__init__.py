"""Self-managed Kafka: a bill constructed from rates and the brokers' metrics."""

from __future__ import annotations

from typing import Final

from chargeback.ecosystems.constructed.plugin import ConstructedEcosystem
from chargeback.ecosystems.focus import load_profile
from chargeback.ecosystems.self_managed_kafka.gatherer import catalogue, open_cluster, tenant_catalogue
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings

ecosystem: Final = ConstructedEcosystem(
    "self_managed_kafka",
    SelfManagedKafkaSettings,
    catalogue(),
    policies_of=tenant_catalogue,
    start=open_cluster,
    focus_profile=load_profile(__name__),
)

__all__ = ["SelfManagedKafkaSettings", "ecosystem"]
