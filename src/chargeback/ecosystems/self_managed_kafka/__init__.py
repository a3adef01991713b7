"""Self-managed Kafka: a bill constructed from rates and from what the brokers' metrics tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.identities import PAYER_TIERS
from chargeback.ecosystems.constructed.settings import PRINCIPAL
from chargeback.ecosystems.contract import Capabilities, TenantContext
from chargeback.ecosystems.self_managed_kafka.gatherer import SelfManagedKafkaGatherer
from chargeback.ecosystems.self_managed_kafka.policies import catalogue, tenant_catalogue
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings
from chargeback.ecosystems.settings import PluginSettings

_CAPABILITIES: Final = Capabilities(constructs_costs=True, payer_tiers=PAYER_TIERS, metrics_identity_type=PRINCIPAL)


@dataclass(frozen=True)
class SelfManagedKafka:
    """Implements :class:`chargeback.ecosystems.contract.Ecosystem`."""

    name: str = "self_managed_kafka"
    settings_model: type[PluginSettings] = SelfManagedKafkaSettings
    capabilities: Capabilities = _CAPABILITIES
    catalogue: PolicyCatalogue = field(default_factory=catalogue)

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        """The policies as ``allocation_policies`` change them."""
        return tenant_catalogue(_own(settings))

    def open(self, context: TenantContext, settings: Any) -> SelfManagedKafkaGatherer:
        """Start work for one tenant."""
        return SelfManagedKafkaGatherer(context, _own(settings))


def _own(settings: Any) -> SelfManagedKafkaSettings:
    if not isinstance(settings, SelfManagedKafkaSettings):
        raise TypeError(f"these are no settings of a self-managed cluster: {type(settings).__name__}")
    return settings


ecosystem: Final = SelfManagedKafka()

__all__ = ["SelfManagedKafka", "SelfManagedKafkaSettings", "ecosystem"]
