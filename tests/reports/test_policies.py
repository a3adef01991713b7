"""Policies in force, and those of earlier days."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

from chargeback.allocation.policies import UNKNOWN, PolicyCatalogue, parse_policies
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.policies import applies_to, list_policies, list_versions
from chargeback.store.control.policies import UsedPolicy

EVEN, OWNER, USAGE = (
    parse_policies({"X": {"portions": [{"share": 1, "try": [method]}]}}, "policies")["X"]
    for method in ("even(active)", "owner", "usage(bytes_in)")
)
EVENLY = {"share": 1, "try": ["even(active)"]}
SHIPPED = PolicyCatalogue({"CONNECT_*": EVEN, "STORAGE": OWNER}, {"STORE": "STORAGE"})
RULES = AllocationRules(SHIPPED.override({"STORAGE": USAGE}), SHIPPED)


DAY = date(2026, 1, 31)


def used(product_type: str, day: int, text: str, hash_: str) -> UsedPolicy:
    """Return a policy first used on a day of January."""
    return UsedPolicy(hash_, product_type, text, datetime(2026, 1, day, tzinfo=UTC))


def test_policies_in_force_and_of_earlier_days() -> None:
    """Policies in force have their source and first use; earlier policies come after them."""
    found = list_policies(
        RULES,
        [
            used("CONNECT_A", 3, EVEN.text, EVEN.hash),
            used("CONNECT_B", 2, EVEN.text, EVEN.hash),
            used("NOVEL", 4, UNKNOWN.text, UNKNOWN.hash),
            used("STORE", 1, OWNER.text, OWNER.hash),
        ],
        DAY,
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


def test_policies_of_a_day_and_the_versions() -> None:
    """A day has the policies of its version, with its first day; a version has its number of calculated days."""
    versions = [
        {"effective_from": "2026-02-01", "reason": "Fair", "policies": {"STORE": {"portions": [EVENLY]}}},
        {"effective_from": "2026-03-01", "reason": "Back", "policies": {}},
    ]
    rules = replace(RULES, catalogue=RULES.catalogue.override(parse_policies(versions, "p")))
    found = {
        str(day): {each.product_type: (each.hash, each.effective_from) for each in list_policies(rules, [], day)}
        for day in (DAY, date(2026, 2, 1), date(2026, 3, 1))
    }
    undated = {"CONNECT_*": (EVEN.hash, None), "STORAGE": (USAGE.hash, None)}
    assert found == {
        "2026-01-31": undated,
        "2026-02-01": {**undated, "STORAGE": (EVEN.hash, date(2026, 2, 1))},
        "2026-03-01": undated,
    }
    first, second = rules.catalogue.versions
    calculated = {date(2026, 1, 31): None, date(2026, 2, 1): first.hash, date(2026, 3, 1): "of another"}
    listed = list_versions(rules, calculated)
    assert [(each.effective_from, each.last_day, each.reason, each.calculated_days) for each in listed] == [
        (date(2026, 2, 1), date(2026, 2, 28), "Fair", 1),
        (date(2026, 3, 1), None, "Back", 0),
    ]
    assert [policy.product_type for each in listed for policy in each.policies] == ["STORE"]
    assert [each.calculated_days for each in list_versions(rules, None)] == [None, None]
    assert second.hash == listed[1].hash
