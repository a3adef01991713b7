"""Rows and ids are passed to a query as one value, on both databases."""

from __future__ import annotations

from sqlalchemy import select

from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.given import among, relation

NAMES = ["a", "b'", 'c"', "ä\\", "", "x" * 300]


def test_relations(database: ControlDatabase) -> None:
    """Every text is returned unchanged, and None as NULL."""
    with database.read() as connection:
        rows = relation(connection, [[name, None] for name in NAMES], ("name", "other"))
        assert sorted(connection.execute(select(rows.c.name, rows.c.other))) == [(name, None) for name in sorted(NAMES)]


def test_among(database: ControlDatabase) -> None:
    """A column can be compared with any number of ids, or none, on both databases."""
    with database.read() as connection:
        column = relation(connection, [[name] for name in NAMES], ("name",)).c.name
        many = {f"id-{number}" for number in range(70_000)}
        assert list(connection.execute(select(column).where(among(connection, column, many | {"ä\\"})))) == [("ä\\",)]
        assert list(connection.execute(select(column).where(among(connection, column, ())))) == []
