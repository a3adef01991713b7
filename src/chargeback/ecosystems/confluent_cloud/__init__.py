"""Confluent Cloud: the bill of an organization, its inventory, and the metrics of its exporter."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import pyarrow as pa

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.confluent_cloud.costs import HISTORY_DAYS
from chargeback.ecosystems.confluent_cloud.gatherer import ConfluentCloudGatherer, catalogue, tenant_catalogue
from chargeback.ecosystems.confluent_cloud.objects import IDENTITY_POOL, PRINCIPAL, SERVICE_ACCOUNT, USER
from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings
from chargeback.ecosystems.confluent_cloud.topics import TopicSettings, topic_settings, usable_topic_settings
from chargeback.ecosystems.confluent_cloud.usage import FLINK_KEPT, with_owners
from chargeback.ecosystems.contract import Capabilities, TenantContext
from chargeback.ecosystems.focus import FocusProfile, load_profile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.model.inventory import Inventory
from chargeback.model.topics import TopicPlan

_CAPABILITIES: Final = Capabilities(
    topic_overlay=True,
    payer_tiers=(frozenset({SERVICE_ACCOUNT, IDENTITY_POOL}), frozenset({USER})),
    metrics_identity_type=PRINCIPAL,
    billing_history_days=HISTORY_DAYS,
)


@dataclass(frozen=True)
class ConfluentCloud:
    """Implements :class:`chargeback.ecosystems.contract.Ecosystem`."""

    name: str = "confluent_cloud"
    settings_model: type[PluginSettings] = ConfluentCloudSettings
    capabilities: Capabilities = _CAPABILITIES
    catalogue: PolicyCatalogue = field(default_factory=catalogue)
    focus_profile: FocusProfile = field(default_factory=lambda: load_profile(__name__))

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        """Return the policies with the changes of ``allocator_params`` and ``allocation_policies``."""
        return tenant_catalogue(_typed_settings(settings))

    def topic_settings(self, settings: PluginSettings) -> TopicSettings:
        """Return the settings of the topic overlay.

        Raises:
            ConfigurationError: they cannot be used.
        """
        return topic_settings(_typed_settings(settings))

    def topic_plan(self, settings: PluginSettings) -> TopicPlan | None:
        """Return the topic overlay's plan for this tenant, or None if it is disabled or its settings are not valid."""
        topics = usable_topic_settings(_typed_settings(settings))
        return None if topics is None else topics.plan(self.catalogue.aliases)

    @property
    def named_measures(self) -> frozenset[str]:
        """The usage of Flink statements."""
        return frozenset({FLINK_KEPT})

    def resolve_usage(self, day: date, usage: pa.Table, inventory: Inventory) -> pa.Table:
        """Return usage with the owners of Flink statements as subjects; it is stored with the names of statements."""
        return with_owners(day, usage, inventory)

    def open(self, context: TenantContext, settings: Any) -> ConfluentCloudGatherer:
        """Start work for one tenant."""
        return ConfluentCloudGatherer(context, _typed_settings(settings))


def _typed_settings(settings: Any) -> ConfluentCloudSettings:
    if not isinstance(settings, ConfluentCloudSettings):
        raise TypeError(f"these are not settings of Confluent Cloud: {type(settings).__name__}")
    return settings


ecosystem: Final = ConfluentCloud()

__all__ = ["ConfluentCloud", "ConfluentCloudSettings", "ecosystem"]
