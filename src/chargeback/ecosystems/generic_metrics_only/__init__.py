"""Any system with metrics, such as a database: fixed, storage and network costs by queries of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.identities import PAYER_TIERS
from chargeback.ecosystems.constructed.settings import PRINCIPAL
from chargeback.ecosystems.contract import Capabilities, TenantContext
from chargeback.ecosystems.generic_metrics_only.gatherer import GenericMetricsGatherer
from chargeback.ecosystems.generic_metrics_only.policies import catalogue, tenant_catalogue
from chargeback.ecosystems.generic_metrics_only.settings import GenericMetricsSettings
from chargeback.ecosystems.settings import PluginSettings

_CAPABILITIES: Final = Capabilities(constructs_costs=True, payer_tiers=PAYER_TIERS, metrics_identity_type=PRINCIPAL)


@dataclass(frozen=True)
class GenericMetricsOnly:
    """Implements :class:`chargeback.ecosystems.contract.Ecosystem`."""

    name: str = "generic_metrics_only"
    settings_model: type[PluginSettings] = GenericMetricsSettings
    capabilities: Capabilities = _CAPABILITIES
    catalogue: PolicyCatalogue = field(default_factory=catalogue)

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        """The policies that the tenant's cost types and ``allocation_policies`` make."""
        return tenant_catalogue(_own(settings))

    def open(self, context: TenantContext, settings: Any) -> GenericMetricsGatherer:
        """Start work for one tenant."""
        return GenericMetricsGatherer(context, _own(settings))


def _own(settings: Any) -> GenericMetricsSettings:
    if not isinstance(settings, GenericMetricsSettings):
        raise TypeError(f"these are no settings of a system known by its metrics: {type(settings).__name__}")
    return settings


ecosystem: Final = GenericMetricsOnly()

__all__ = ["GenericMetricsOnly", "GenericMetricsSettings", "ecosystem"]
