"""The inventory changes only through complete listings, and keeps deleted entities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from chargeback.model.inventory import UNALLOCATED, Grant, Identity, Inventory, ListedInventory, Resource
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.inventory import ensure_known, merge_listing, read_inventory
from chargeback.store.control.schema import identities

NOW = datetime(2026, 1, 10, tzinfo=UTC)
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
CLUSTER = Resource("lkc-1", "kafka_cluster", "orders", parent_id="env-1", created_at=CREATED, metadata={"cku": 2})
ACCOUNT = Identity("sa-1", "service_account", "billing")
KEY = Grant("key-1", "lkc-1", "sa-1", created_at=CREATED)
COMPLETE = frozenset({"kafka_cluster", "service_account", "grant"})


def merge(
    database: ControlDatabase,
    inventory: Inventory,
    *,
    hours: int = 0,
    believe_empty: int = -1,
    complete: frozenset[str] = COMPLETE,
) -> Inventory:
    """Merge a listing; return the inventory."""
    with database.write() as connection:
        merge_listing(
            connection,
            ListedInventory(inventory, complete),
            NOW + timedelta(hours=hours),
            empty_listings_to_delete=believe_empty,
        )
        return read_inventory(connection)


@pytest.fixture
def known(database: ControlDatabase) -> Inventory:
    """Return the inventory after a first, complete listing."""
    return merge(database, Inventory([CLUSTER], [ACCOUNT], [KEY]))


def test_what_is_listed_is_known(known: Inventory) -> None:
    """Every attribute of a listed entity is stored."""
    assert known == Inventory([CLUSTER], [ACCOUNT], [KEY])


def test_what_a_complete_listing_does_not_have_is_deleted(database: ControlDatabase, known: Inventory) -> None:
    """An entity is deleted as of the first complete listing without it; later ones do not change the time."""
    other = Inventory([Resource("lkc-2", "kafka_cluster")], [Identity("sa-2", "service_account")], [])
    merge(database, other, hours=1)
    later = merge(database, other, hours=2)
    assert {r.resource_id: r.deleted_at for r in later.resources} == {"lkc-1": NOW + timedelta(hours=1), "lkc-2": None}
    assert [g.deleted_at for g in later.grants] == [None]


def test_the_provider_knows_better_when_something_was_deleted(database: ControlDatabase, known: Inventory) -> None:
    """A listed deletion time is kept, and an entity that returns is alive again."""
    gone = Resource("lkc-1", "kafka_cluster", "orders", parent_id="env-1", deleted_at=CREATED)
    assert merge(database, Inventory([gone], [ACCOUNT], [KEY])).resources[0].deleted_at == CREATED
    assert merge(database, Inventory([CLUSTER], [ACCOUNT], [KEY])).resources[0].deleted_at is None


def test_a_known_creation_time_is_not_forgotten(database: ControlDatabase, known: Inventory) -> None:
    """A listing without creation times keeps the known ones."""
    later = merge(database, Inventory([Resource("lkc-1", "kafka_cluster")], [ACCOUNT], [KEY]))
    assert later.resources[0].created_at == CREATED
    assert later.resources[0].display_name is None


def test_a_failed_listing_changes_nothing(database: ControlDatabase, known: Inventory) -> None:
    """An incomplete listing neither deletes nor adds."""
    half = Inventory([Resource("lkc-2", "kafka_cluster")], [], [])
    assert merge(database, half, complete=frozenset({"service_account"}), believe_empty=1).resources == [CLUSTER]


@pytest.mark.parametrize(("believe_empty", "deleted"), [(-1, [False] * 3), (1, [True] * 3), (3, [False, False, True])])
def test_entirely_empty_listings(
    database: ControlDatabase, known: Inventory, believe_empty: int, deleted: list[bool]
) -> None:
    """Empty listings never delete, or only after a number of consecutive ones."""
    found = []
    for hours in range(3):
        later = merge(database, Inventory([], [ACCOUNT], [KEY]), hours=hours, believe_empty=believe_empty)
        found.append(later.resources[0].deleted_at is not None)
    assert found == deleted


def test_a_filled_listing_ends_the_row_of_empty_ones(database: ControlDatabase, known: Inventory) -> None:
    """Only consecutive empty listings count."""
    for inventory in (Inventory(), Inventory([CLUSTER], [ACCOUNT], [KEY]), Inventory()):
        later = merge(database, inventory, believe_empty=2)
    assert later.resources[0].deleted_at is None


def test_billed_and_charged_have_rows(database: ControlDatabase, known: Inventory) -> None:
    """Entities that only the bill or the metrics have get a row; known ones keep theirs."""
    with database.write() as connection:
        ensure_known(
            connection,
            NOW,
            billed=[Resource("lkc-1", "unknown"), Resource("lkc-9", "kafka_cluster")],
            charged=[Identity("ghost", "principal"), Identity("sa-1", "principal")],
        )
        ensure_known(connection, NOW)
        found = read_inventory(connection)
    assert {r.resource_id: r.resource_type for r in found.resources} == {
        "lkc-1": "kafka_cluster",
        "lkc-9": "kafka_cluster",
    }
    assert {i.identity_id: i.identity_type for i in found.identities} == {
        UNALLOCATED: "system",
        "ghost": "principal",
        "sa-1": "service_account",
    }


def test_a_partial_listing_adds_and_never_deletes(database: ControlDatabase, known: Inventory) -> None:
    """A missing entity is not deleted; one that returns is alive again."""
    gone = Identity("sa-1", "service_account", "billing", deleted_at=CREATED)
    merge(database, Inventory([CLUSTER], [gone], [KEY]))
    with database.write() as connection:
        for seen in ([Identity("sa-2", "service_account")], [ACCOUNT]):
            partial = ListedInventory(Inventory([], seen), frozenset(), partial=frozenset({"service_account"}))
            merge_listing(connection, partial, NOW + timedelta(hours=1), empty_listings_to_delete=1)
        found = read_inventory(connection)
        seen_at = connection.execute(
            select(identities.c.last_seen_at).where(identities.c.identity_id == "sa-1")
        ).scalar()
    assert {identity.identity_id: identity.deleted_at for identity in found.identities} == {"sa-1": None, "sa-2": None}
    assert seen_at == NOW + timedelta(hours=1)


def test_no_listing_deletes_unallocated(database: ControlDatabase) -> None:
    """A provider's type `system` does not delete UNALLOCATED."""
    with database.write() as connection:
        ensure_known(connection, NOW)
    later = merge(database, Inventory([Resource("s", "system")]), complete=frozenset({"system"}))
    assert [(identity.identity_id, identity.deleted_at) for identity in later.identities] == [(UNALLOCATED, None)]
