"""The policies of a system known by its metrics: one per cost type, as its ``allocation_strategy`` says."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from chargeback.allocation.methods import AllocationMethod
from chargeback.allocation.policies import Policy, PolicyCatalogue, Portion, parse_policies
from chargeback.ecosystems.generic_metrics_only.settings import CostType, GenericMetricsSettings

_EVEN: Final = ("even(active)", "even(period)", "unallocated")


def catalogue() -> PolicyCatalogue:
    """Nothing: which product types there are is up to each tenant."""
    return PolicyCatalogue({}, {})


def tenant_catalogue(settings: GenericMetricsSettings) -> PolicyCatalogue:
    """A policy per cost type; above them, the tenant's ``allocation_policies``."""
    own = PolicyCatalogue({each.name: _policy(each) for each in settings.cost_types}, {})
    return own.override(parse_policies(settings.allocation_policies, "allocation_policies"))


def _policy(cost_type: CostType) -> Policy:
    first = (f"usage({cost_type.measure})",) if cost_type.allocation_strategy == "usage_ratio" else ()
    return Policy((Portion(Decimal(1), tuple(map(AllocationMethod.parse, (*first, *_EVEN)))),))
