"""Saved views have names that are unique in their tenant."""

from __future__ import annotations

from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.views import (
    ViewWrite,
    change_view,
    count_views,
    create_view,
    is_taken_by_another,
    list_views,
    remove_view,
)

MINE = ViewWrite("mine", "costs", "period=7d")


def test_a_view_lives_and_dies(database: ControlDatabase) -> None:
    """Created once, changed, removed once; listed by name in the order of bytes."""
    with database.write() as connection:
        made = create_view(connection, MINE, "alice")
        assert made is not None
        assert create_view(connection, MINE, "bob") is None
        assert create_view(connection, ViewWrite("Zoo", "map", ""), "bob") is not None
    with database.read() as connection:
        found = [(row["name"], row["created_by"]) for row in list_views(connection)]
        assert found == [("Zoo", "bob"), ("mine", "alice")]
        assert count_views(connection) == 2
        assert is_taken_by_another(connection, made["id"], "Zoo")
        assert not is_taken_by_another(connection, made["id"], "mine")
    with database.write() as connection:
        changed = change_view(connection, made["id"], ViewWrite("mine", "rows", ""))
        assert changed is not None
        assert dict(changed) == {**made, "page": "rows", "query": ""}
        assert change_view(connection, 999, MINE) is None
        assert remove_view(connection, made["id"])
        assert not remove_view(connection, made["id"])
        assert count_views(connection) == 1
