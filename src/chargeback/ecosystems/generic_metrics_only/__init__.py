"""Any system with metrics, such as a database: fixed, storage and network costs, measured by the user's queries."""

from __future__ import annotations

from typing import Final

from chargeback.ecosystems.constructed.plugin import ConstructedEcosystem
from chargeback.ecosystems.generic_metrics_only.gatherer import catalogue, open_system, tenant_catalogue
from chargeback.ecosystems.generic_metrics_only.settings import GenericMetricsSettings

ecosystem: Final = ConstructedEcosystem(
    "generic_metrics_only", GenericMetricsSettings, catalogue(), policies_of=tenant_catalogue, start=open_system
)

__all__ = ["GenericMetricsSettings", "ecosystem"]
