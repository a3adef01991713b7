"""Views have names that are unique for each author, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import IntegrityError

from chargeback.store.control import views
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.views import ViewWrite

ONE = ViewWrite("Payments", "costs", "period=30d&tag:team=payments")


def test_the_life_of_a_view(database: ControlDatabase) -> None:
    """A view is created, listed by name, changed without losing its author, and removed."""
    with database.write() as connection:
        first = views.create_view(connection, ONE, "ann")
        views.create_view(connection, ViewWrite("Élan", "map", ""), "bob")
        views.create_view(connection, ViewWrite("Map", "map", ""), "bob")
        changed = views.change_view(connection, first["id"], ViewWrite("Zebra", "topics", ""))
        assert changed is not None
        assert {**changed} == {**first} | {"name": "Zebra", "page": "topics", "query": ""}
        assert [row["name"] for row in views.list_views(connection)] == ["Map", "Zebra", "Élan"]
        assert views.remove_view(connection, first["id"])
        assert not views.remove_view(connection, first["id"])
        assert views.change_view(connection, first["id"], ONE) is None
        assert views.lock_views(connection) == 2


def test_the_views_of_one_author(database: ControlDatabase) -> None:
    """With an owner, the views of others are not listed, changed or removed, and their names are free."""
    with database.write() as connection:
        theirs = views.create_view(connection, ONE, "ann")["id"]
        mine = views.create_view(connection, ViewWrite("Map", "map", ""), "bob")["id"]
        assert [row["id"] for row in views.list_views(connection, "bob")] == [mine]
        assert views.change_view(connection, theirs, ViewWrite("Zebra", "map", ""), owner="bob") is None
        assert not views.remove_view(connection, theirs, owner="bob")
        assert not views.is_taken(connection, ONE.name, "bob")
        assert views.lock_views(connection, "bob") == 1
        assert views.name_of_view(connection, theirs, "bob") is None
        assert views.name_of_view(connection, theirs) == ONE.name
        also = views.create_view(connection, ONE, "bob")["id"]
        assert views.remove_view(connection, also, owner="bob")
        assert views.change_view(connection, mine, ViewWrite("Zebra", "map", ""), owner="bob") is not None
        assert views.remove_view(connection, mine, owner="bob")
        assert [row["name"] for row in views.list_views(connection)] == [ONE.name]


def test_an_id_is_not_given_twice(database: ControlDatabase) -> None:
    """The id of a removed view is not reused."""
    with database.write() as connection:
        last = views.create_view(connection, ONE, "ann")
        views.remove_view(connection, last["id"])
        assert views.create_view(connection, ONE, "ann")["id"] > last["id"]


def test_names_that_are_taken(database: ControlDatabase) -> None:
    """A name is unique for each author, and case-sensitive."""
    with database.write() as connection:
        views.create_view(connection, ONE, "ann")
        assert views.is_taken(connection, ONE.name)
        assert views.is_taken(connection, ONE.name, "ann")
        assert not views.is_taken(connection, ONE.name.upper())
    with pytest.raises(IntegrityError), database.write() as connection:
        views.create_view(connection, ONE, "ann")


def test_writers_take_turns(database: ControlDatabase) -> None:
    """Of many that save the same name at the same time, one succeeds; the others see that it is taken."""

    def _save(_: int) -> bool:
        with database.write() as connection:
            views.lock_views(connection)
            if views.is_taken(connection, ONE.name):
                return False
            views.create_view(connection, ONE, "me")
            return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(_save, range(6))) == 1
