"""Policies in force, and those by which earlier days were split."""

from __future__ import annotations

from datetime import UTC, datetime

from chargeback.allocation.policies import UNKNOWN, PolicyCatalogue, parse_policies
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.policies import applies_to, list_policies
from chargeback.store.control.policies import UsedPolicy

EVEN, OWNER, USAGE = (
    parse_policies({"X": {"portions": [{"share": 1, "try": [method]}]}}, "policies")["X"]
    for method in ("even(active)", "owner", "usage(bytes_in)")
)
SHIPPED = PolicyCatalogue({"CONNECT_*": EVEN, "STORAGE": OWNER}, {"STORE": "STORAGE"})
RULES = AllocationRules(SHIPPED.override({"STORAGE": USAGE}), SHIPPED)


def used(product_type: str, day: int, text: str, hash_: str) -> UsedPolicy:
    """Return a policy that was used first on a day of January."""
    return UsedPolicy(hash_, product_type, text, datetime(2026, 1, day, tzinfo=UTC))


def test_policies_in_force_and_of_earlier_days() -> None:
    """What is in force says where it comes from and since when it is used; what was used before comes after it."""
    found = list_policies(
        RULES,
        [
            used("CONNECT_A", 3, EVEN.text, EVEN.hash),
            used("CONNECT_B", 2, EVEN.text, EVEN.hash),
            used("NOVEL", 4, UNKNOWN.text, UNKNOWN.hash),
            used("STORE", 1, OWNER.text, OWNER.hash),
        ],
    )
    assert [(each.product_type, each.hash, each.source) for each in found] == [
        ("CONNECT_*", EVEN.hash, "shipped"),
        ("STORAGE", USAGE.hash, "configured"),
        ("NOVEL", UNKNOWN.hash, "unknown"),
        ("STORE", OWNER.hash, "recorded"),
    ]
    assert [each.first_used_at and each.first_used_at.day for each in found] == [2, None, 4, 1]
    assert [each.product_type for each in found if applies_to(RULES, each, "STORE")] == ["STORAGE", "STORE"]
    assert [each.product_type for each in found if applies_to(RULES, each, "CONNECT_A")] == ["CONNECT_*"]
