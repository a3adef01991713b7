"""Who could take a share, way by way."""

from __future__ import annotations

import pytest

from chargeback.allocation.columns import integers_of
from chargeback.allocation.policies import Way
from chargeback.allocation.ways import Recipients
from chargeback.model import chargeback as words
from tests.allocation.bills import members, usage


def recipients(used: str = "", belong: str = "", *ways: str) -> Recipients:
    """Who could take a share by ``ways``, from texts."""
    return Recipients(usage(used), members(belong), [Way.parse(way) for way in ways])


def pool(found: Recipients, way: str, resource_id: str) -> tuple[list[str], list[int] | None] | None:
    """Names and weights, for a line of a resource."""
    taking = found.find(Way.parse(way), resource_id)
    if taking is None:
        return None
    weights = None if taking.weights is None else integers_of(taking.weights)
    return [found.names[position] for position in taking.who.to_pylist()], weights


def test_usage_is_summed_over_its_measures() -> None:
    """The measures that a way names are added up per resource and identity; who used nothing takes no part."""
    used = "in r b 1 \n out r b 2 \n in r a 0.5 \n in s a 4 \n other r c 9 \n in r z 0"
    found = recipients(used, "", "usage(in + out)", "usage(out)")
    assert pool(found, "usage(in + out)", "r") == (["a", "b"], [500_000, 3_000_000])
    assert pool(found, "usage(in + out)", "s") == (["a"], [4_000_000])
    assert pool(found, "usage(out)", "r") == (["b"], [2_000_000])
    assert pool(found, "usage(out)", "s") is None


def test_members_take_part_once() -> None:
    """Whoever belongs to a resource takes part in its even split, in the order of ids, however often it is said."""
    found = recipients("", "r active b a b \n r owner b \n r owners c \n * period z", *_EVEN, "owner")
    assert pool(found, "even(active)", "r") == (["a", "b"], None)
    assert pool(found, "even(owners)", "r") == (["c"], None)
    assert pool(found, "owner", "r") == (["b"], None)
    assert pool(found, "even(period)", "r") == pool(found, "even(period)", "elsewhere") == (["z"], None)
    assert pool(found, "even(active)", "elsewhere") is None


def test_nobody_is_always_there() -> None:
    """What nobody takes is UNALLOCATED, which takes part in nothing else but its own usage."""
    found = recipients("in r UNALLOCATED 1", "r active UNALLOCATED", "usage(in)", "even(active)")
    assert pool(found, "unallocated", "r") == (["UNALLOCATED"], None)
    assert pool(found, "usage(in)", "r") == (["UNALLOCATED"], [1_000_000])
    assert pool(found, "even(active)", "r") is None


def test_proportional_follows_charges() -> None:
    """The proportional way weighs what was charged; who was credited, and UNALLOCATED, are left out."""
    found = recipients("", "r active a b c", "even(active)", "proportional")
    assert pool(found, "proportional", "r") is None
    a, b, c = (found.names.index(name) for name in "abc")
    found.add_charged([(c, 7), (a, 5), (b, -1), (found.nobody, 9)])
    assert pool(found, "proportional", "r") == (["a", "c"], [5, 7])


@pytest.mark.parametrize(
    ("way", "available", "expected"),
    [
        ("usage(in)", True, words.NO_METRICS_LOCATED),
        ("usage(zero)", True, words.NO_USAGE_FOR_ACTIVE_IDENTITIES),
        ("usage(zero)", False, words.METRICS_UNAVAILABLE),
        ("owner", True, words.NO_OWNER_LOCATED),
        ("even(owners)", True, words.NO_OWNER_LOCATED),
        ("even(active)", True, words.NO_ACTIVE_IDENTITIES_LOCATED),
        ("even(period)", True, words.NO_IDENTITIES_LOCATED),
        ("proportional", True, words.NO_ACTIVE_IDENTITIES_LOCATED),
    ],
)
def test_why_a_way_finds_nobody(way: str, available: bool, expected: str) -> None:
    """The reason names what was missing."""
    found = recipients("zero r a 0 \n in s a 1", "", way, "usage(in)", "usage(zero)")
    assert found.why_not(Way.parse(way), "r", metrics_available=available) == expected


_EVEN = ("even(active)", "even(owners)", "even(period)")
