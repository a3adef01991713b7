"""Revisions change with every write of their data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

from sqlalchemy import Connection

from chargeback.model.inventory import Identity, Inventory, ListedInventory
from chargeback.store.control.cost_categories import CategoryWrite, write_category
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import DatasetState, save_day
from chargeback.store.control.inventory import ensure_known, merge_listing
from chargeback.store.control.revisions import ControlRevisions, read_entity_revisions, read_revisions
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.control.topics import Lifetime, save_topic_lifetimes, touch_topics
from tests.support.clock import NOW
from tests.support.days import set_chargebacks

DAY = date(2026, 1, 1)


def _read(database: ControlDatabase) -> ControlRevisions:
    with database.read() as connection:
        found = read_revisions(connection)
        assert read_entity_revisions(connection) == (found.tags, found.inventory)
        return found


def test_every_write_shows(database: ControlDatabase) -> None:
    """Tags, cost categories, inventory and days have separate revisions, and every write changes its own."""
    empty = _read(database)
    assert empty == _read(database)
    assert empty.last_calculated is None
    with database.write() as connection:
        create(connection, "acme", TagWrite("identity", "sa-1", "team", "a"), "me")
    tagged = _read(database)
    assert (tagged.tags > empty.tags, tagged.inventory, tagged.days) == (True, empty.inventory, empty.days)
    with database.write() as connection:
        write_category(connection, CategoryWrite("cost_center", "{}"), expected=None)
    mapped = _read(database)
    assert mapped == replace(tagged, categories=tagged.categories + 1)
    listed = ListedInventory(Inventory([], [Identity("sa-1", "user")], []), frozenset(["user"]))
    seen = {tagged.inventory}
    writes: list[Callable[[Connection], object]] = [
        lambda connection: merge_listing(connection, listed, NOW, empty_listings_to_delete=-1),
        lambda connection: ensure_known(connection, NOW),
        lambda connection: save_topic_lifetimes(connection, "topic", {"lkc": {"t": Lifetime()}}, {}, seen_at=NOW),
        lambda connection: touch_topics(connection, "topic", []),
    ]
    for write in writes:
        with database.write() as connection:
            write(connection)
        seen.add(_read(database).inventory)
    assert len(seen) == 5
    with database.write() as connection:
        set_chargebacks(connection, DAY)
        save_day(connection, DAY + timedelta(days=1), billing_gathered=True)
    calculated = _read(database)
    assert calculated.days != tagged.days
    assert calculated.last_calculated == DAY
    with database.write() as connection:
        set_chargebacks(connection, DAY, state=DatasetState.DUE, fingerprint="x")
    assert _read(database).last_calculated == DAY  # it is being recalculated: its rows exist until then
    assert _read(database).days != calculated.days


def test_every_letter_of_a_long_error_shows(database: ControlDatabase) -> None:
    """Long errors that differ only in the middle have different revisions."""
    seen = set()
    for letter in "ab":
        with database.write() as connection:
            save_day(connection, DAY, error=f"{'x' * 1000}{letter}{'x' * 1000}")
        seen.add(_read(database).days)
    assert len(seen) == 2
