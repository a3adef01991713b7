"""The policies that cost types make."""

from __future__ import annotations

from chargeback.ecosystems.generic_metrics_only.gatherer import catalogue, tenant_catalogue
from tests.ecosystems.generic_metrics_only.conftest import settings_for

EVEN = ["even(active)", "even(period)", "unallocated"]


def test_a_policy_per_cost_type() -> None:
    """``even_split`` shares evenly, ``usage_ratio`` by the cost type's own measure first."""
    found = tenant_catalogue(settings_for("http://p"))
    chains = {name: [str(method) for method in policy.portions[0].methods] for name, policy in found.policies.items()}
    assert chains == {"PG_SERVER": EVEN, "PG_STORAGE": EVEN, "PG_NETWORK": ["usage(pg_network)", *EVEN]}
    assert catalogue().policies == {}


def test_a_tenant_may_have_its_own() -> None:
    """``allocation_policies`` replaces what the strategy made."""
    own = {"PG_STORAGE": {"portions": [{"share": "1", "try": ["usage(presence)"]}]}}
    policy = tenant_catalogue(settings_for("http://p", allocation_policies=own)).find("PG_STORAGE")
    assert policy is not None
    assert str(policy.portions[0].methods[0]) == "usage(presence)"
