"""Every released revision is upgraded to the current schema, with all of its data."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, MetaData, Table, insert, select, update
from sqlalchemy.exc import IntegrityError

from chargeback.model.dated import DatedValue, Period
from chargeback.store.control import tags, views
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import DatasetDay, DatasetState, read_days
from tests.support.databases import KINDS, SCHEMA, raw_connection

ROWS = 3
MARCH = date(2026, 3, 1)
VIEW = views.ViewWrite("Payments", "costs", "")
_SCRIPTS = Config()
_SCRIPTS.set_main_option("script_location", "chargeback.store.control:migrations")
#: The columns of ``days`` that are rows of ``dataset_days`` since 0016.
OF_CHARGEBACKS = ("chargeback_calculated", "calculated_fingerprint", "chargeback_rows", "revision")
OF_TOPICS = (
    *("topic_overlay_gathered", "topic_attribution_calculated", "topic_due"),
    *("topic_fingerprint", "topic_rows", "topic_revision"),
)
#: Columns that later revisions store in another form.
TRANSLATED = {("days", name) for name in ("metrics_unavailable", *OF_CHARGEBACKS, *OF_TOPICS)}
REVISIONS = sorted(script.revision for script in ScriptDirectory.from_config(_SCRIPTS).walk_revisions())

#: Columns that were renamed.
RENAMED = {("anomaly_marks", "identity_id"): "who"}


def value(column: Column[Any], number: int) -> object:
    """Return a value for a column, different for each number; texts have the maximum length."""
    kind = column.type.python_type
    if kind is str:
        return f"{number}".ljust(getattr(column.type, "length", None) or 1000, "é")
    values: dict[type, object] = {
        bool: number % 2 == 0,
        int: 10_000 + number,
        float: number + 0.25,
        date: date(2026, 1, 1) + timedelta(days=number),
        datetime: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        object: {"key": [number, "ü"]},  # JSON
    }
    return values[kind]


def tables_of(connection: Connection) -> list[Table]:
    """Return the existing tables, as reflected from the database."""
    metadata = MetaData()
    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


def fill(connection: Connection) -> None:
    """Insert rows into every table; the tenant's only row gets a value in every column."""
    for table in tables_of(connection):
        rows = [{column.name: value(column, number) for column in table.columns} for number in range(ROWS)]
        if table.name == "tenant":
            connection.execute(update(table).values({**rows[0], "id": 1}))
        else:
            connection.execute(insert(table), rows)


def content(connection: Connection, columns: dict[str, list[str]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of these columns, by table."""
    found = {}
    for table in tables_of(connection):
        if table.name in columns:
            names = [RENAMED.get((table.name, name), name) for name in columns[table.name]]
            wanted = [
                table.columns[new if new in table.columns else old]
                for old, new in zip(columns[table.name], names, strict=True)
            ]
            found[table.name] = sorted((tuple(row) for row in connection.execute(select(*wanted))), key=repr)
    return found


@pytest.mark.parametrize(
    ("connection_string", "revision"),
    [
        *((KINDS[0], revision) for revision in REVISIONS),
        # On a server, the first revision covers all steps. A schema differs from a database only in names.
        *(
            pytest.param(kind, revision, marks=[] if revision in (REVISIONS[0], REVISIONS[-1]) else pytest.mark.drill)
            for kind, revision in product((*KINDS[1:], SCHEMA), REVISIONS)
        ),
    ],
    indirect=["connection_string"],
)
def test_a_database_with_data_is_upgraded(connection_string: str, revision: str) -> None:
    """Data stored under an earlier revision is neither lost nor changed."""
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


def downgrade(connection: Connection, revision: str) -> None:
    """Downgrade a database to an earlier revision."""
    config = Config()
    config.set_main_option("script_location", "chargeback.store.control:migrations")
    config.attributes["connection"] = connection
    command.downgrade(config, revision)


def test_tags_of_earlier_versions_hold_for_ever(connection_string: str) -> None:
    """A downgrade keeps the value of a key that has no end, and a second value is refused again."""
    with ControlDatabase(connection_string) as database:
        database.upgrade("0007")
        with raw_connection(connection_string) as connection:
            connection.execute(insert(tags_of(connection)), [tag("a", "x"), tag("b", "x")])
        database.upgrade()
        with database.write() as connection:
            found = [(entity, held) for _, entity, _, held in tags.every_tag(connection)]
            assert dict(found) == {"a": DatedValue("x"), "b": DatedValue("x")}
            for entity, first in (("a", MARCH), ("c", None)):
                write = tags.TagWrite("identity", entity, "team", "y", Period(first, None if first else MARCH))
                tags.write_many(connection, "acme", [write], created_by="me", override=True)
        with raw_connection(connection_string) as connection:
            downgrade(connection, "0007")
            table = tags_of(connection)
            assert {"valid_from", "valid_to"}.isdisjoint(table.columns.keys())
            rows = connection.execute(select(table.c.entity_id, table.c.tag_value).order_by(table.c.entity_id))
            assert [tuple(row) for row in rows] == [("a", "y"), ("b", "x")]
        with pytest.raises(IntegrityError), raw_connection(connection_string) as connection:
            connection.execute(insert(table), [tag("a", "z")])
        database.upgrade()
        with database.read() as connection:
            assert len(list(tags.every_tag(connection))) == 2


def table_of(connection: Connection, name: str) -> Table:
    """Return a table, as reflected from the database."""
    return next(table for table in tables_of(connection) if table.name == name)


def tags_of(connection: Connection) -> Table:
    """Return the table of tags, as reflected from the database."""
    return table_of(connection, "tags")


def tag(entity: str, value: str) -> dict[str, object]:
    """Return a row of the table of tags from before there were dates."""
    names = {"tenant_id": "acme", "entity_type": "identity", "entity_id": entity, "tag_key": "team"}
    return names | {"tag_value": value, "created_by": "me", "created_at": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.extensive
def test_days_without_metrics_are_incomplete_days(connection_string: str) -> None:
    """Days that an earlier version marked as without metrics are incomplete days."""
    with ControlDatabase(connection_string) as database:
        database.upgrade("0003")
        with raw_connection(connection_string) as connection:
            table = table_of(connection, "days")
            days = [date(2026, 1, 1), date(2026, 1, 2)]
            rows = [{"tracking_date": day, "metrics_unavailable": day == days[0]} for day in days]
            connection.execute(insert(table), rows)
        database.upgrade()
        with database.read() as connection:
            found = {state.tracking_date: dict(state.incomplete) for state in read_days(connection)}
        assert found == {days[0]: {"metrics": "the metrics source did not answer"}, days[1]: {}}


def test_views_of_several_authors_have_one_name(connection_string: str) -> None:
    """A downgrade renames all views of a name but the first; ids are never reused."""
    with ControlDatabase(connection_string) as database:
        database.upgrade("0012")
        with raw_connection(connection_string) as connection:
            last = views.create_view(connection, VIEW, "ann")["id"]
            views.remove_view(connection, last)
        database.upgrade()
        with database.write() as connection:
            first, second = (views.create_view(connection, VIEW, who)["id"] for who in ("ann", "bob"))
        assert last < first < second
        with raw_connection(connection_string) as connection:
            downgrade(connection, "0012")
        with raw_connection(connection_string) as connection:
            assert [row["name"] for row in views.list_views(connection)] == ["Payments", f"Payments ({second})"]
        with pytest.raises(IntegrityError), raw_connection(connection_string) as connection:
            views.create_view(connection, VIEW, "eve")


def test_the_datasets_of_days_are_rows(connection_string: str) -> None:
    """An upgrade makes a row of each dataset of a day; the downgrade restores the columns."""
    flags = list(product([False, True], repeat=5))
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(len(flags))]
    rows: list[dict[str, Any]] = [
        {
            "tracking_date": day,
            "billing_gathered": calculated or due,
            "chargeback_calculated": calculated,
            "calculated_fingerprint": f"c{number}" if calculated or is_measured else None,
            "chargeback_rows": 100 + number,
            "revision": number,
            "topic_overlay_gathered": is_measured,
            "topic_attribution_calculated": attributed,
            "topic_due": topic_due,
            "topic_fingerprint": f"t{number}" if attributed else None,
            "topic_rows": 200 + number,
            "topic_revision": 300 + number,
        }
        for number, (day, (calculated, due, is_measured, attributed, topic_due)) in enumerate(
            zip(days, flags, strict=True)
        )
    ]
    names = ["tracking_date", *OF_CHARGEBACKS, *OF_TOPICS]
    with ControlDatabase(connection_string) as database:
        database.upgrade("0015")
        with raw_connection(connection_string) as connection:
            connection.execute(insert(table_of(connection, "days")), rows)
            before = content(connection, {"days": names})
        database.upgrade()
        with database.read() as connection:
            found = read_days(connection)
        for row, state in zip(rows, found, strict=True):
            is_new = not row["billing_gathered"] and row["calculated_fingerprint"] is None
            due = DatasetState.NONE if is_new else DatasetState.DUE
            assert state.chargebacks == DatasetDay(
                DatasetState.CURRENT if row["chargeback_calculated"] else due,
                row["calculated_fingerprint"] is not None,
                row["calculated_fingerprint"],
                row["chargeback_rows"],
                row["revision"],
            )
            assert state.topics == DatasetDay(
                QUEUE[row["topic_attribution_calculated"], row["topic_due"]],
                row["topic_overlay_gathered"],
                row["topic_fingerprint"],
                row["topic_rows"],
                row["topic_revision"],
            )
        with raw_connection(connection_string) as connection:
            downgrade(connection, "0015")
            assert content(connection, {"days": names}) == before
        database.upgrade()
        with database.read() as connection:
            assert read_days(connection) == found


#: Whether topics were attributed and due, as one state.
QUEUE = {
    (False, False): DatasetState.NONE,
    (False, True): DatasetState.DUE,
    (True, False): DatasetState.CURRENT,
    (True, True): DatasetState.REVIEW,
}
