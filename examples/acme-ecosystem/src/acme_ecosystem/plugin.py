"""The object that the entry point names."""

from __future__ import annotations

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.ecosystems.contract import Capabilities, TenantContext
from chargeback.ecosystems.settings import PluginSettings

from .gatherer import TEAM, AcmeGatherer
from .policies import CATALOGUE
from .settings import AcmeSettings


class AcmeStorage:
    """Implements ``chargeback.ecosystems.contract.Ecosystem``."""

    name = "acme_storage"
    settings_model: type[PluginSettings] = AcmeSettings
    capabilities = Capabilities(payer_tiers=(frozenset({TEAM}),), metrics_identity_type=TEAM)
    catalogue = CATALOGUE

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        """Return the policies, overridden by the tenant's own."""
        return CATALOGUE.override(parse_policies(settings.allocation_policies, "allocation_policies"))

    def open(self, context: TenantContext, settings: AcmeSettings) -> AcmeGatherer:
        """Start work for one tenant."""
        return AcmeGatherer(context, settings.invoice_folder)


ecosystem = AcmeStorage()
