"""The rules that calculate days now, and those that calculated stored days."""

from __future__ import annotations

import pyarrow as pa

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.model.chargeback import UNKNOWN_PRODUCT_TYPE
from chargeback.recompute.rules import CONFIGURED, SHIPPED, AllocationRules, AppliedPolicies
from tests.allocation.bills import CATALOGUE, POLICIES


def applied(shipped: PolicyCatalogue, policy_hash: str, detail: str = "x") -> AppliedPolicies:
    """Return the policies of a day with one row of type CKU."""
    rows = pa.table({"product_type": ["CKU"], "policy_hash": [policy_hash], "allocation_detail": [detail]})
    return AppliedPolicies(AllocationRules(CATALOGUE, shipped), (), rows)


def test_where_a_policy_comes_from() -> None:
    """A policy is reported as shipped or configured; one that is not recorded is None."""
    now = POLICIES["CKU"].hash
    for shipped, expected in ((CATALOGUE, SHIPPED), (PolicyCatalogue({}, {}), CONFIGURED)):
        found = applied(shipped, now).find("CKU")
        assert found is not None
        assert (found.source, found.matched) == (expected, "CKU")
    assert applied(CATALOGUE, "another").find("CKU") is None


def test_a_type_that_had_no_policy() -> None:
    """Stored rows show that a type had no policy, even if the catalogue has one now."""
    assert applied(CATALOGUE, "x", UNKNOWN_PRODUCT_TYPE).is_unknown("CKU")
    assert not applied(CATALOGUE, "x").is_unknown("CKU")
    assert applied(CATALOGUE, "x").is_unknown("NEWS")
