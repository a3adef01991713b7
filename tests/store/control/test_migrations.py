"""Every revision that was ever installed is brought to this code's schema, with all that is in it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, MetaData, Table, insert, select, update

from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import read_days
from tests.support.databases import raw_connection

ROWS = 3
_SCRIPTS = Config()
_SCRIPTS.set_main_option("script_location", "chargeback.store.control:migrations")
#: Columns that later revisions keep in another form.
TRANSLATED = {("days", "metrics_unavailable")}
REVISIONS = sorted(script.revision for script in ScriptDirectory.from_config(_SCRIPTS).walk_revisions())


def value(column: Column[Any], number: int) -> object:
    """A value of a column, another one for each number; texts are as long as they may be."""
    kind = column.type.python_type
    if kind is str:
        return f"{number}".ljust(getattr(column.type, "length", None) or 1000, "é")
    values: dict[type, object] = {
        bool: number % 2 == 0,
        int: 10_000 + number,
        date: date(2026, 1, 1) + timedelta(days=number),
        datetime: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        object: {"key": [number, "ü"]},  # JSON
    }
    return values[kind]


def tables_of(connection: Connection) -> list[Table]:
    """The tables that there are, as the database itself describes them."""
    metadata = MetaData()
    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


def fill(connection: Connection) -> None:
    """Rows in every table; the tenant has one already, which gets values in every column."""
    for table in tables_of(connection):
        rows = [{column.name: value(column, number) for column in table.columns} for number in range(ROWS)]
        if table.name == "tenant":
            connection.execute(update(table).values({**rows[0], "id": 1}))
        else:
            connection.execute(insert(table), rows)


def content(connection: Connection, columns: dict[str, list[str]]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of these columns, by table."""
    found = {}
    for table in tables_of(connection):
        if table.name in columns:
            wanted = [table.columns[name] for name in columns[table.name]]
            found[table.name] = sorted((tuple(row) for row in connection.execute(select(*wanted))), key=repr)
    return found


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_with_data_is_upgraded(connection_string: str, revision: str) -> None:
    """Nothing that was stored under an earlier revision is lost or changed."""
    with ControlDatabase(connection_string) as database:
        database.upgrade(revision)
        assert database.revisions().stamped == revision
        with raw_connection(connection_string) as connection:
            fill(connection)
            columns = {
                table.name: [each.name for each in table.columns if (table.name, each.name) not in TRANSLATED]
                for table in tables_of(connection)
            }
            before = content(connection, columns)
        assert all(len(rows) == (1 if name == "tenant" else ROWS) for name, rows in before.items())
        database.upgrade()
        assert database.is_current()
        with database.read() as connection:
            assert content(connection, columns) == before


def test_days_without_metrics_are_incomplete_days(connection_string: str) -> None:
    """What an earlier version knew of days without metrics is one of the reasons why a day is incomplete."""
    with ControlDatabase(connection_string) as database:
        database.upgrade("0003")
        with raw_connection(connection_string) as connection:
            table = next(table for table in tables_of(connection) if table.name == "days")
            days = [date(2026, 1, 1), date(2026, 1, 2)]
            rows = [{"tracking_date": day, "metrics_unavailable": day == days[0]} for day in days]
            connection.execute(insert(table), rows)
        database.upgrade()
        with database.read() as connection:
            found = {state.tracking_date: dict(state.incomplete) for state in read_days(connection)}
        assert found == {days[0]: {"metrics": "the metrics source did not answer"}, days[1]: {}}
