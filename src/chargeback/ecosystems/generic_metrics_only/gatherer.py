"""Gathers the data of a system that has only metrics."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Final

from chargeback.ecosystems.constructed.bill import LineDefaults, gather
from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.constructed.system import QueriedSystem, UsageQuery
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.generic_metrics_only.charges import charges
from chargeback.ecosystems.generic_metrics_only.policies import tenant_catalogue
from chargeback.ecosystems.generic_metrics_only.settings import GenericMetricsSettings

SYSTEM: Final = "metrics_system"


def open_system(context: TenantContext, settings: GenericMetricsSettings) -> ConstructedGatherer:
    """Start work for the tenant of this system."""
    connections = ExitStack()
    system = QueriedSystem(
        context, settings, SYSTEM, connections, queries=settings.queries, summed=settings.summed_queries
    )
    used = tenant_catalogue(settings).measures
    measures = {
        each.measure: UsageQuery(each.allocation_query, each.allocation_label or settings.identity_label)
        for each in settings.cost_types
        if each.allocation_query is not None and each.measure in used
    }
    return ConstructedGatherer(
        connections,
        bill_of=partial(
            gather,
            charges=partial(charges, settings.cost_types, system.meter),
            defaults=LineDefaults.of(settings, SYSTEM, context.currency),
        ),
        usage_of=partial(system.usage, queries=measures),
        listing=system.inventory,
        checks=system.check,
    )
