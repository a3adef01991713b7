"""Policies are written by people; every mistake in them is named."""

from __future__ import annotations

from datetime import date

import pytest

from chargeback.allocation.policies import Policy, PolicyCatalogue, PolicyVersion, parse_policies
from chargeback.errors import ConfigurationError

EVEN = {"portions": [{"share": "1", "try": ["even(active)"]}]}
OWNER = {"portions": [{"share": "1", "try": ["owner", "even(active)"]}]}


def test_every_chain_ends_with_unallocated() -> None:
    """A chain that does not name UNALLOCATED still ends with it."""
    policy = parse_policies({"A": EVEN}, "policies")["A"]
    assert [str(method) for method in policy.portions[0].methods] == ["even(active)", "unallocated"]


def test_an_exact_name_wins_over_patterns_and_aliases_lead_to_it() -> None:
    """A product type is looked up by alias, then by name, then by the longest matching pattern."""
    parsed = parse_policies({"CONNECT_*": OWNER, "CONNECT_NUM_*": EVEN, "CONNECT_NUM_TASKS": OWNER}, "p")
    catalogue = PolicyCatalogue(parsed, {"CONNECT_TASKS": "CONNECT_NUM_TASKS"})
    assert catalogue.find("CONNECT_TASKS") is parsed["CONNECT_NUM_TASKS"]
    assert catalogue.find("CONNECT_NUM_RECORDS") is parsed["CONNECT_NUM_*"]
    assert catalogue.find("CONNECT_CAPACITY") is parsed["CONNECT_*"]
    assert catalogue.find("UNHEARD_OF") is None


def test_an_override_under_an_alias_overrides_what_it_stands_for() -> None:
    """A tenant may override a policy by an alias, such as an older, singular name."""
    catalogue = PolicyCatalogue(parse_policies({"KAFKA_NUM_CKUS": EVEN}, "p"), {"KAFKA_NUM_CKU": "KAFKA_NUM_CKUS"})
    replaced = catalogue.override(parse_policies({"KAFKA_NUM_CKU": OWNER}, "p"))
    assert replaced.find("KAFKA_NUM_CKUS") == parse_policies({"A": OWNER}, "p")["A"]


def test_a_policy_has_the_same_hash_wherever_it_is_written() -> None:
    """The hash depends on the meaning, not on the spelling."""
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
    """All mistakes of all policies are reported together, each with its path."""
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


DECEMBER = {"effective_from": "2026-12-01", "reason": "Fees are shared", "policies": {"A": OWNER}}


def test_versions_begin_on_their_days() -> None:
    """The latest version that has begun applies; types that it does not name use policies without dates, then the
    shipped ones."""
    january = {"effective_from": date(2027, 1, 1), "reason": "Back", "policies": {"B": OWNER}}
    own = parse_policies([january, {"policies": {"A": EVEN, "C": EVEN}}, DECEMBER], "p")
    shipped = PolicyCatalogue(parse_policies({"A": OWNER, "B": EVEN}, "p"), {"OLD": "A"})
    catalogue = shipped.override(own)
    even, owner = own["A"], shipped.policies["A"]
    found = {
        str(day): [catalogue.on(day).find(name) for name in "ABC"]
        for day in (date(2026, 11, 30), date(2026, 12, 1), date(2026, 12, 31), date(2027, 1, 1))
    }
    assert found == {
        "2026-11-30": [even, even, even],
        "2026-12-01": [owner, even, even],
        "2026-12-31": [owner, even, even],
        "2027-01-01": [even, owner, even],
    }
    assert [each.reason for each in catalogue.versions] == ["Fees are shared", "Back"]
    assert catalogue.on(date(2026, 12, 1)).versions == ()
    assert catalogue.override({"D": even}).versions == catalogue.versions, "an override keeps them"


def test_what_was_shipped_holds_on_its_days_beside_what_a_tenant_says() -> None:
    """Shipped policies apply on the days of their version; a new type has its policy on all days, unless an earlier
    version covers it."""

    def policies(**methods: str) -> dict[str, Policy]:
        written = {name: {"portions": [{"share": "1", "try": [method]}]} for name, method in methods.items()}
        return dict(parse_policies(written, "policies"))

    present = policies(A="owner", B="owner", C_1="owner", NEW="owner")
    before = policies(A="even(active)", B="even(active)", **{"C_*": "even(active)"}, GONE="even(active)")
    own = policies(B="even(period)")
    catalogue = PolicyCatalogue(present, {}).override(own)
    versions = [PolicyVersion(date.min, "1", before), PolicyVersion(date(2026, 11, 1), "2", present)]
    found = catalogue.with_shipped(versions, present, own)

    def on(day: date) -> dict[str, str]:
        names = ("A", "B", "C_1", "C_2", "NEW", "GONE")
        policies_of = found.on(day).policies_of(names)
        return {name: str(policy.portions[0].methods[0]) for name, policy in policies_of.items()}

    even, members, owner, nobody = "even(active)", "even(period)", "owner", "unallocated"
    assert on(date(2026, 10, 31)) == {"A": even, "B": members, "C_1": even, "C_2": even, "NEW": owner, "GONE": even}
    assert on(date(2026, 11, 1)) == {
        **{"A": owner, "B": members, "C_1": owner, "C_2": nobody},
        **{"NEW": owner, "GONE": nobody},
    }
    assert found.hash != catalogue.hash
    assert catalogue.with_shipped(versions[1:], present, own) is catalogue
    later = found.override(parse_policies([{"effective_from": "2026-12-01", "reason": "x", "policies": {}}], "p"))
    assert later.only(["A"], catalogue).on(date(2026, 10, 31)).find("A") == before["A"]
    assert later.only(["A"], catalogue).on(date(2026, 11, 2)).find("A") == present["A"]


def test_a_version_may_name_an_alias_and_counts_as_a_whole() -> None:
    """Measures of future versions are gathered in advance; a version changes the hash of the catalogue."""
    by_usage = {"portions": [{"share": "1", "try": ["usage(bytes_in)"]}]}
    shipped = PolicyCatalogue(parse_policies({"A": OWNER}, "p"), {"OLD": "A"})
    own = parse_policies([{**DECEMBER, "policies": {"OLD": by_usage}}], "p")
    catalogue = shipped.override(own)
    assert catalogue.on(date(2026, 12, 1)).find("A") == own.versions[0].policies["OLD"]
    assert catalogue.measures == own.measures == {"bytes_in"}
    assert (own.names, list(own)) == (["OLD"], [])
    assert catalogue.hash != shipped.hash != shipped.override(parse_policies([DECEMBER], "p")).hash


def test_the_hash_of_a_version_is_that_of_what_it_says() -> None:
    """The hash does not depend on the first day, the reason or the order of policies."""
    first = parse_policies([{**DECEMBER, "policies": {"A": OWNER, "B": EVEN}}], "p").versions[0]
    again = {"effective_from": "2027-01-01", "reason": "Again", "policies": {"B": EVEN, "A": OWNER}}
    assert parse_policies([again], "p").versions[0].hash == first.hash
    assert parse_policies([DECEMBER], "p").versions[0].hash != first.hash


def test_every_mistake_of_versions_is_named_where_it_is() -> None:
    """All mistakes are reported together, each with its path."""
    with pytest.raises(ConfigurationError) as raised:
        parse_policies(
            [
                DECEMBER,
                {**DECEMBER, "reason": "Once more"},
                {"policies": {}},
                {"policies": {"A": {"portions": []}}},
                {**DECEMBER, "effective_from": "December"},
                {**DECEMBER, "effective_from": "2027-02-01", "reason": " "},
                {**DECEMBER, "until": "2027-01-01"},
                "A",
            ],
            "allocation_policies",
        )
    assert [problem.path for problem in raised.value.problems] == [
        "allocation_policies[1].effective_from",
        "allocation_policies[3].policies.A",
        "allocation_policies[3]",
        "allocation_policies[4].effective_from",
        "allocation_policies[5].reason",
        "allocation_policies[6]",
        "allocation_policies[7]",
    ]
