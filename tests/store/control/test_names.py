"""Ids have names."""

from __future__ import annotations

from sqlalchemy import update

from chargeback.model.inventory import Identity, Resource
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, Named, names_of
from chargeback.store.control.schema import resources
from tests.support.clock import NOW


def test_names_of_some(database: ControlDatabase) -> None:
    """Those that are known have a name or none; the others are left out, however many are asked for."""
    billed = [Resource(f"lkc-{n}", "cluster", f"name {n}", deleted_at=NOW if n else None) for n in range(1200)]
    with database.write() as connection:
        ensure_known(connection, NOW, billed=billed, charged=[Identity("sa-1", "user")])
    with database.read() as connection:
        found = names_of(connection, RESOURCES, {*(each.resource_id for each in billed), "nobody"})
        assert len(found) == 1200
        assert (found["lkc-0"], found["lkc-7"]) == (Named("name 0", "cluster", None), Named("name 7", "cluster", NOW))
        assert names_of(connection, IDENTITIES, ["sa-1", "lkc-1"]) == {"sa-1": Named(None, "user", None)}
        assert names_of(connection, IDENTITIES, []) == {}


def test_names_have_an_order(database: ControlDatabase) -> None:
    """That of the ids, which does not depend on the database, nor on what was written when."""
    ids = ["lkc-b", "LKC-c", "lkc-a", "lkc_a", "lkc-B"]
    with database.write() as connection:
        ensure_known(connection, NOW, billed=[Resource(each, "cluster") for each in ids], charged=[])
        connection.execute(update(resources).where(resources.c.resource_id == "LKC-c").values(display_name="new"))
    with database.read() as connection:
        assert list(names_of(connection, RESOURCES, ids)) == sorted(ids)
