"""The members of each resource on a day."""

from __future__ import annotations

from datetime import UTC, datetime

from chargeback.allocation.members import Membership
from chargeback.model.inventory import Grant, Identity, Inventory, Resource
from tests.allocation.bills import DAY, usage

TIERS = (frozenset({"service_account", "identity_pool"}), frozenset({"user"}))
BEFORE = datetime(2026, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
AFTER = datetime(2026, 2, 1, tzinfo=UTC)

RESOURCES = [
    Resource("env-1", "environment"),
    Resource("lkc-1", "kafka_cluster", parent_id="env-1"),
    Resource("lkc-2", "kafka_cluster", parent_id="env-1"),
    Resource("lcc-1", "connector", parent_id="lkc-1", active_as="lkc-1"),
    Resource("lsrc-1", "schema_registry", parent_id="env-1", active_as="env-1"),
]


def people(*names: str) -> list[Identity]:
    """Return existing service accounts."""
    return [Identity(name, "service_account") for name in names]


def members(inventory: Inventory, *billed: str, used: str = "") -> set[str]:
    """Return the members of the day as ``resource relation identity``."""
    table = Membership(inventory, TIERS).members_on(DAY, usage(used), billed)
    return {f"{row['resource_id']} {row['relation']} {row['identity_id']}" for row in table.to_pylist()}


def test_a_key_makes_its_owner_active_while_it_exists() -> None:
    """A key makes its owner active on every day on which it exists, even for part of the day."""
    grants = [
        Grant("k1", "lkc-1", "a", created_at=NOON),
        Grant("k2", "lkc-1", "b", created_at=AFTER),
        Grant("k3", "lkc-1", "c", created_at=BEFORE, deleted_at=BEFORE),
        Grant("k4", "lkc-1", "d", deleted_at=NOON),
    ]
    found = members(Inventory(RESOURCES, people("a", "b", "c", "d"), grants), "lkc-1")
    assert {row for row in found if row.startswith("lkc-1")} == {"lkc-1 active a", "lkc-1 active d"}


def test_the_owner_of_a_key_who_no_longer_exists_is_not_active() -> None:
    """An identity that was deleted before the day, or was never in the inventory, is not active."""
    identities = [Identity("a", "service_account", deleted_at=BEFORE), Identity("key", "api_key")]
    grants = [Grant("k1", "lkc-1", "a"), Grant("k2", "lkc-1", "ghost"), Grant("k3", "lkc-1", "key")]
    assert members(Inventory(RESOURCES, identities, grants), "lkc-1") == set()


def test_usage_makes_active_even_whom_only_the_metrics_know() -> None:
    """Usage above zero makes an identity active, even an unknown one; zero usage and UNALLOCATED do not count."""
    used = "bytes_in lkc-1 ghost 5 \n bytes_in lkc-1 UNALLOCATED 5 \n bytes_in lkc-1 idle 0"
    found = members(Inventory(RESOURCES), "lkc-1", used=used)
    assert {row for row in found if row.startswith(("lkc-1", "*"))} == {"lkc-1 active ghost", "* period ghost"}


def test_owners_are_active_and_owners() -> None:
    """The owner of a resource is active on it, if both exist."""
    resources = [*RESOURCES, Resource("x", "y", owner_id="a"), Resource("old", "y", owner_id="a", deleted_at=BEFORE)]
    found = members(Inventory(resources, people("a")), "x", "old")
    assert found == {"x active a", "x owner a", "x owners a", "* period a"}


def test_owners_include_those_of_the_parts() -> None:
    """A compute pool has the owners of its statements, but no owner of its own."""
    resources = [Resource("pool", "flink_compute_pool"), Resource("s", "statement", parent_id="pool", owner_id="a")]
    found = members(Inventory(resources, people("a")), "pool")
    assert {row for row in found if row.startswith("pool")} == {"pool owners a"}


def test_another_resource_stands_in_when_nobody_is_active() -> None:
    """The users of its cluster count as active on a connector, and those active anywhere in the environment on a
    registry."""
    grants = [Grant("k1", "lkc-1", "a"), Grant("k2", "lkc-2", "b")]
    found = members(Inventory(RESOURCES, people("a", "b"), grants), "lcc-1", "lsrc-1")
    assert {row for row in found if row.startswith("lcc-1")} == {"lcc-1 active a"}
    assert {row for row in found if row.startswith("lsrc-1")} == {"lsrc-1 active a", "lsrc-1 active b"}


def test_own_keys_come_before_the_stand_in() -> None:
    """If identities have a key for the registry itself, only they share its cost."""
    grants = [Grant("k1", "lkc-1", "a"), Grant("k2", "lsrc-1", "b")]
    found = members(Inventory(RESOURCES, people("a", "b"), grants), "lsrc-1")
    assert {row for row in found if row.startswith("lsrc-1")} == {"lsrc-1 active b"}


def test_a_cluster_without_active_identities_has_nobody_to_stand_in() -> None:
    """The cost of an unused cluster is not shared by users of other clusters, but by the period's identities."""
    found = members(Inventory(RESOURCES, people("a"), [Grant("k", "lkc-2", "a")]), "lkc-1")
    assert not [row for row in found if row.startswith("lkc-1")]
    assert "* period a" in found


def test_the_period_falls_back_tier_by_tier() -> None:
    """If no identity was active on any resource, existing service accounts and pools share the cost; without any, users
    do."""
    users = [Identity("u-1", "user"), Identity("u-2", "user", created_at=AFTER)]
    pool = Identity("pool-1", "identity_pool")
    assert members(Inventory(RESOURCES, [*users, pool]), "lkc-1") == {"* period pool-1"}
    assert members(Inventory(RESOURCES, users), "lkc-1") == {"* period u-1"}
    assert members(Inventory(RESOURCES), "lkc-1") == set()


def test_evidence_covers_what_may_be_billed_later() -> None:
    """Members are stored for every resource that has any, so that a late line finds its evidence."""
    found = members(Inventory(RESOURCES, people("a"), [Grant("k", "lkc-1", "a")]))
    assert {"lkc-1 active a", "lcc-1 active a", "lsrc-1 active a"} <= found
