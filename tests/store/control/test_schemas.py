"""Tenants with schemas in one database share its connections, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from sqlalchemy import make_url, text

from chargeback.config.storage import apart_from_schema, in_schema
from chargeback.errors import ForeignStorage
from chargeback.store.backup import connection_parameters
from chargeback.store.control.database import ControlDatabase
from chargeback.store.ownership import StorageOwner
from tests.support.databases import scratch_database, with_schema

pytestmark = pytest.mark.usefixtures("postgresql")

TENANTS = 12


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Yield an empty database on a server."""
    with scratch_database("postgresql", tmp_path) as connection_string:
        yield connection_string


@pytest.fixture
def databases(address: str) -> Iterator[list[ControlDatabase]]:
    """Yield the databases of tenants that share it."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(
                ControlDatabase(with_schema(address, f"t{number}"), owner=StorageOwner(f"org-{number}", "e"))
            )
            for number in range(TENANTS)
        ]
        for database in made:
            database.upgrade()
        yield made


def connections(address: str) -> int:
    """Return the number of clients connected to the database, without this one and the server's own processes."""
    with psycopg.connect(address) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def stage(database: ControlDatabase) -> str:
    """Return the recorded stage of the tenant."""
    with database.read() as connection:
        return str(connection.execute(text("SELECT stage FROM tenant")).scalar())


def write_stage(database: ControlDatabase, value: str) -> None:
    """Record a stage."""
    with database.write() as connection:
        connection.execute(text("UPDATE tenant SET stage = :value"), {"value": value})


def test_each_has_its_own_tables(databases: list[ControlDatabase]) -> None:
    """A tenant uses its own tables even if another one used the connection before."""

    def work(number: int) -> None:
        database = databases[number % TENANTS]
        write_stage(database, f"stage {number % TENANTS}")
        assert stage(database) == f"stage {number % TENANTS}"

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(TENANTS * 20)))
    assert [stage(database) for database in databases] == [f"stage {number}" for number in range(TENANTS)]


def test_a_failed_transaction_leaves_the_schema(databases: list[ControlDatabase]) -> None:
    """A rollback undoes the tenant's change, but not the selection of its schema."""
    for number, database in enumerate(databases):
        with pytest.raises(ZeroDivisionError), database.write() as connection:
            connection.execute(text("UPDATE tenant SET stage = 'lost'"))
            raise ZeroDivisionError
        write_stage(database, f"{number}")
    assert [stage(database) for database in databases] == [f"{number}" for number in range(TENANTS)]


def test_connections_are_shared(address: str, databases: list[ControlDatabase]) -> None:
    """Connections are as many as are used at once, not as tenants; closing the last tenant closes them."""
    for database in databases:
        write_stage(database, "a")
    assert connections(address) == 1
    for database in databases[1:]:
        database.close()
    write_stage(databases[0], "b")
    assert connections(address) == 1
    databases[0].close()
    ending = time.monotonic() + 5
    while connections(address) and time.monotonic() < ending:  # the server sees a closed connection a moment later
        time.sleep(0.01)
    assert connections(address) == 0


def test_a_schema_is_of_one_tenant(address: str, databases: list[ControlDatabase]) -> None:
    """A schema belongs to one tenant, like a database."""
    with (
        ControlDatabase(with_schema(address, "t0"), owner=StorageOwner("org-1", "e")) as other,
        pytest.raises(ForeignStorage, match="belongs to tenant_id org-0"),
        other.read(),
    ):
        pass
    with ControlDatabase(address) as bare:
        assert bare.revisions().stamped is None


@pytest.mark.parametrize("options", ["", "-c geqo=off", "-cgeqo=off"])
def test_a_schema_is_an_option_of_the_connection(address: str, options: str) -> None:
    """Other options of the connection are kept, and PostgreSQL's own programs understand the schema."""
    url = make_url(address).update_query_dict({"options": options} if options else {})
    chosen = in_schema(url, "acme")
    assert apart_from_schema(chosen) == (url, "acme")
    assert apart_from_schema(url) == (url, None)
    with ControlDatabase(chosen.render_as_string(hide_password=False)) as database:
        database.upgrade()
        with database.read() as connection:
            assert connection.execute(text("SHOW geqo")).scalar() == ("off" if options else "on")
            assert connection.execute(text("SHOW timezone")).scalar() == "UTC"
    with psycopg.connect(make_conninfo(**connection_parameters(chosen))) as direct:
        assert direct.execute("SELECT count(*) FROM tenant").fetchone() == (1,)
