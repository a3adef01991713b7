"""The policies: how ACME's charges are split."""

from __future__ import annotations

from chargeback.allocation.policies import PolicyCatalogue, parse_policies


def one_portion(*methods: str) -> dict[str, object]:
    """Return a policy that splits the whole cost by the first of the methods that finds an identity."""
    return {"portions": [{"share": "1", "try": list(methods)}]}


POLICIES = {
    "ACME_STORAGE": one_portion("owner", "even(active)", "even(period)", "unallocated"),
    "ACME_REQUESTS": one_portion("usage(requests)", "owner", "even(period)", "unallocated"),
    "ACME_SUPPORT": one_portion("proportional", "even(period)", "unallocated"),
}

CATALOGUE = PolicyCatalogue(parse_policies(POLICIES, "policies"), aliases={})
