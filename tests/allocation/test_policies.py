"""Policies are data that a person writes; every mistake in them is named."""

from __future__ import annotations

import pytest

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.errors import ConfigurationError

EVEN = {"portions": [{"share": "1", "try": ["even(active)"]}]}
OWNER = {"portions": [{"share": "1", "try": ["owner", "even(active)"]}]}


def test_every_chain_ends_with_unallocated() -> None:
    """A chain that does not say so still gives what belongs to nobody to UNALLOCATED."""
    policy = parse_policies({"A": EVEN}, "policies")["A"]
    assert [str(method) for method in policy.portions[0].methods] == ["even(active)", "unallocated"]


def test_an_exact_name_wins_over_patterns_and_aliases_lead_to_it() -> None:
    """A product type is looked up by alias, by its name, then by the longest pattern that fits."""
    parsed = parse_policies({"CONNECT_*": OWNER, "CONNECT_NUM_*": EVEN, "CONNECT_NUM_TASKS": OWNER}, "p")
    catalogue = PolicyCatalogue(parsed, {"CONNECT_TASKS": "CONNECT_NUM_TASKS"})
    assert catalogue.find("CONNECT_TASKS") is parsed["CONNECT_NUM_TASKS"]
    assert catalogue.find("CONNECT_NUM_RECORDS") is parsed["CONNECT_NUM_*"]
    assert catalogue.find("CONNECT_CAPACITY") is parsed["CONNECT_*"]
    assert catalogue.find("UNHEARD_OF") is None


def test_an_override_under_an_alias_overrides_what_it_stands_for() -> None:
    """A tenant may write the singular name that its older bills show."""
    catalogue = PolicyCatalogue(parse_policies({"KAFKA_NUM_CKUS": EVEN}, "p"), {"KAFKA_NUM_CKU": "KAFKA_NUM_CKUS"})
    replaced = catalogue.override(parse_policies({"KAFKA_NUM_CKU": OWNER}, "p"))
    assert replaced.find("KAFKA_NUM_CKUS") == parse_policies({"A": OWNER}, "p")["A"]


def test_a_policy_has_the_same_hash_wherever_it_is_written() -> None:
    """Spelling does not matter to the hash, meaning does."""
    first = parse_policies(
        {"A": {"portions": [{"share": "0.70", "try": ["usage(a+b)"]}, {"share": 0.3, "try": ["owner"]}]}}, "p"
    )
    second = parse_policies(
        {
            "B": {
                "portions": [
                    {"share": "0.7", "try": ["usage( a + b )"]},
                    {"share": "0.3", "try": ["owner", "unallocated"]},
                ]
            }
        },
        "p",
    )
    assert first["A"].hash == second["B"].hash != parse_policies({"A": OWNER}, "p")["A"].hash
    assert first["A"].measures == {"a", "b"}


def test_every_mistake_is_named_where_it_is() -> None:
    """All mistakes of all policies are reported at once, each with its path."""
    with pytest.raises(ConfigurationError) as raised:
        parse_policies(
            {
                "A": {"portions": [{"share": "0.5", "try": ["owner"]}]},
                "B": {"portions": [{"share": "2", "try": ["even(everyone)", "magic"]}]},
                "C": {"portions": [{"share": "x", "try": []}]},
                "D": ["owner"],
                "E": {"portions": [{"share": "1"}]},
            },
            "allocation_policies",
        )
    paths = [problem.path for problem in raised.value.problems]
    assert paths == [
        "allocation_policies.A",
        "allocation_policies.B.portions[0].share",
        "allocation_policies.B.portions[0].try[0]",
        "allocation_policies.B.portions[0].try[1]",
        "allocation_policies.C.portions[0].share",
        "allocation_policies.C.portions[0].try",
        "allocation_policies.D",
        "allocation_policies.E.portions[0]",
    ]
