"""Gathers the data of a system that has only metrics: charges from the user's own queries.

Its policies come from the ``allocation_strategy`` of each cost type.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Final

from chargeback.allocation.methods import AllocationMethod
from chargeback.allocation.policies import Policy, PolicyCatalogue, Portion, parse_policies
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
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.constructed.system import QueriedSystem, UsageQuery
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.generic_metrics_only.settings import CostType, Fixed, GenericMetricsSettings, StorageGib
from chargeback.errors import SourceDataError

_EVEN: Final = ("even(active)", "even(period)", "unallocated")

SYSTEM: Final = "metrics_system"


def catalogue() -> PolicyCatalogue:
    """Return an empty catalogue: each tenant has its own product types."""
    return PolicyCatalogue({}, {})


def tenant_catalogue(settings: GenericMetricsSettings) -> PolicyCatalogue:
    """Return a policy per cost type, overridden by the tenant's ``allocation_policies``."""
    own = PolicyCatalogue({each.name: _policy(each) for each in settings.cost_types}, {})
    return own.override(parse_policies(settings.allocation_policies, "allocation_policies"))


def _policy(cost_type: CostType) -> Policy:
    first = (f"usage({cost_type.measure})",) if cost_type.allocation_strategy == "usage_ratio" else ()
    return Policy((Portion(Decimal(1), tuple(map(AllocationMethod.parse, (*first, *_EVEN)))),))


def charges(cost_types: Sequence[CostType], meter: Meter | None, day: date) -> list[Charge]:
    """Return the charges of a day. Cost types with a rate of zero are neither measured nor billed. ``meter`` may be
    None if all quantities are fixed.

    Raises:
        SourceDataError: the day has no sample of a billed quantity.
        SourceError: as for :class:`Meter`.
    """
    return [_charge(each, meter, day) for each in cost_types if each.rate]


def _charge(cost_type: CostType, meter: Meter | None, day: date) -> Charge:
    quantity, unit, seen = _quantity(cost_type, meter, day)
    return Charge(cost_type.product_category, cost_type.name, quantity, unit, cost_type.rate, seen)


def _quantity(cost_type: CostType, meter: Meter | None, day: date) -> tuple[Fraction, str, str | None]:
    """Return the quantity, its unit, and the measured part of the day."""
    asked = cost_type.cost_quantity
    if isinstance(asked, Fixed):
        return for_hours(asked.count), "hour", None
    if meter is None:
        raise SourceDataError(f"there is no metrics source to measure {cost_type.name}", source="metrics")
    query = with_step(asked.query, meter.step)
    if isinstance(asked, StorageGib):
        reading = measured(meter.mean(query, day), cost_type.name)
        return gib_hours(reading), "GiB-hour", coverage(reading)
    reading = measured(meter.total(query, day), cost_type.name)
    return gib(reading), "GiB", coverage(reading)


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
