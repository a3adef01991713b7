"""The policies of a system with only metrics: one per cost type, from its ``allocation_strategy``."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from chargeback.allocation.methods import AllocationMethod
from chargeback.allocation.policies import Policy, PolicyCatalogue, Portion, parse_policies
from chargeback.ecosystems.generic_metrics_only.settings import CostType, GenericMetricsSettings

_EVEN: Final = ("even(active)", "even(period)", "unallocated")


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
