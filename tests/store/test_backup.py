"""A backup is of one moment or fails; PostgreSQL's programs get no secret in their arguments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from sqlalchemy import make_url

from chargeback.access.caller import Right
from chargeback.errors import StorageError
from chargeback.store.backup import back_up, connection_parameters, restore, run_client
from chargeback.store.control.access_tokens import TokenWrite, create_token, find_token, new_token
from chargeback.store.control.cost_categories import CategoryWrite, category_history, write_category
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.control.notes import NoteWrite, create_note, find_note
from chargeback.store.control.views import ViewWrite, create_view, list_views
from chargeback.store.facts.partial_files import PARTIALS
from chargeback.store.facts.places import Folder
from chargeback.store.facts.tables import BILLING_TABLE, read_day
from chargeback.store.tenant import TenantStore
from tests.support.clock import NOW
from tests.support.damage import flip_a_bit
from tests.support.databases import PostgresServer, own_postgres_server, scratch_database
from tests.support.facts import ECOSYSTEM, TENANT_ID, line, tenant_store, write_lines
from tests.support.objects import PLACES, new_place


@pytest.fixture
def address(tmp_path: Path, postgresql: str) -> Iterator[str]:
    """Yield an empty PostgreSQL database, whose locks can pause a backup."""
    with scratch_database("postgresql", tmp_path) as connection_string:
        yield connection_string


@pytest.fixture(params=PLACES)
def store(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> Iterator[TenantStore]:
    """Yield the storage of a tenant with one day, with its facts in each kind of storage."""
    opened = TenantStore.open(
        tenant_name="acme",
        tenant_id=TENANT_ID,
        ecosystem=ECOSYSTEM,
        connection_string=address,
        facts=new_place(request.param, tmp_path),
    )
    opened.prepare()
    write_lines(opened.facts, [line(date(2026, 1, 1), "1.00")])
    yield opened
    opened.close()


def back_up_while(store: TenantStore, address: str, folder: Path, work: Callable[[], object]) -> list[Exception]:
    """Return the errors of a backup during which ``work`` is called."""
    errors: list[Exception] = []

    def copy() -> None:
        try:
            back_up(store, address, folder)
        except StorageError as error:
            errors.append(error)

    with psycopg.connect(address) as blocker, psycopg.connect(address, autocommit=True) as watcher:
        blocker.execute("LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
        copying = threading.Thread(target=copy)
        copying.start()
        until = time.monotonic() + 60
        while not watcher.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            assert time.monotonic() < until
            time.sleep(0.02)
        work()
        blocker.rollback()
        copying.join()
    return errors


def test_a_backup_that_nobody_disturbs(store: TenantStore, address: str, tmp_path: Path) -> None:
    """A backup that waits for a lock succeeds later."""
    assert back_up_while(store, address, tmp_path / "backups", lambda: None) == []
    (made,) = (tmp_path / "backups").iterdir()
    assert (made / "backup.json").is_file()


def test_partial_aggregates_are_left_out(store: TenantStore, address: str, tmp_path: Path) -> None:
    """Partials are a cache that is rebuilt when missing."""
    (store.facts.root / PARTIALS).mkdir(parents=True)
    made = back_up(store, address, tmp_path / "backups")
    assert (made / "facts").is_dir()
    assert not (made / "facts" / PARTIALS).exists()


def test_runs_go_on_while_a_backup_is_made(store: TenantStore, address: str, tmp_path: Path) -> None:
    """The copy of the database is of one point in time, and the backup has all files that it lists."""

    def write_and_replace() -> None:
        lease = store.acquire(LeaseOwner.this_process())
        write_lines(store.facts, [line(date(2026, 1, 1), "5.00"), line(date(2026, 1, 2), "2.00")])
        lease.release()

    assert back_up_while(store, address, tmp_path / "backups", write_and_replace) == []
    (made,) = (tmp_path / "backups").iterdir()
    with restored(made, store, tmp_path) as found:
        assert read_day(found.facts, BILLING_TABLE, date(2026, 1, 1))["total_cost"].to_pylist() == [Decimal(1)]
        assert found.facts.snapshot(BILLING_TABLE).days == [date(2026, 1, 1)]


def test_a_damaged_backup_is_refused(store: TenantStore, address: str, tmp_path: Path) -> None:
    """Each file of a backup must have its original content."""
    made = back_up(store, address, tmp_path / "backups")
    flip_a_bit(next((made / "facts").rglob("*.parquet")))
    with pytest.raises(StorageError, match="the backup is damaged, 1 of 1 files"), restored(made, store, tmp_path):
        pass


@contextmanager
def restored(made: Path, store: TenantStore, folder: Path) -> Iterator[TenantStore]:
    """Yield a storage into which a backup was restored."""
    kind = "folder" if isinstance(store.facts.place, Folder) else "s3"
    with scratch_database("postgresql", folder) as other:
        opened = TenantStore.open(
            tenant_name="acme",
            tenant_id=TENANT_ID,
            ecosystem=ECOSYSTEM,
            connection_string=other,
            facts=new_place(kind, folder / "restored"),
        )
        with closing(opened):
            restore(made, opened, other)
            yield opened


def test_restored_facts_are_seen(store: TenantStore, address: str, tmp_path: Path) -> None:
    """Readers see the restored rows and those that the next run commits; the revision in the database is that of the
    backup."""
    lease = store.acquire(LeaseOwner.this_process())
    write_lines(store.facts, [line(date(2026, 1, 2), "2.00")])
    lease.release()
    made = back_up(store, address, tmp_path / "backups")
    lease = store.acquire(LeaseOwner.this_process())
    write_lines(store.facts, [line(date(2026, 1, 3), "3.00")])
    lease.release()
    kind = "folder" if isinstance(store.facts.place, Folder) else "s3"
    with scratch_database("postgresql", tmp_path) as other:
        place = new_place(kind, tmp_path / "restored")
        stores = [
            TenantStore.open(
                tenant_name="acme", tenant_id=TENANT_ID, ecosystem=ECOSYSTEM, connection_string=other, facts=place
            )
            for _ in range(2)
        ]
        restored, reader = stores
        restore(made, restored, other)
        assert [reader.facts.snapshot(BILLING_TABLE).days, restored.facts.snapshot(BILLING_TABLE).days] == [
            [date(2026, 1, 1), date(2026, 1, 2)]
        ] * 2
        lease = restored.acquire(LeaseOwner.this_process())
        write_lines(restored.facts, [line(date(2026, 1, 4), "4.00")])
        lease.release()
        assert reader.facts.snapshot(BILLING_TABLE).days[-1] == date(2026, 1, 4)
        for each in stores:
            each.close()


def test_what_people_made_comes_back(tmp_path: Path) -> None:
    """A restored storage has the views, notes, tokens and all versions of cost categories of the backup."""
    with tenant_store(tmp_path / "old") as old:
        with old.control.write() as connection:
            create_view(connection, ViewWrite("Payments", "costs", "period=30d"), "ann")
            note = create_note(connection, NoteWrite(date(2026, 1, 1), date(2026, 1, 2), "Load test"), "ann")
            for expected, document in ((None, "{}"), (1, None), (None, '{"rules": []}')):
                write_category(connection, CategoryWrite("cost_center", document), expected=expected)
            versions = category_history(connection, "cost_center", offset=0, limit=9)
            token, write = new_token("acme"), TokenWrite("ci", frozenset({Right.READ}))
            created = create_token(connection, token, write, who="ann", now=NOW)
        made = back_up(old, f"sqlite:///{tmp_path}/old/acme/control.db", tmp_path / "backups")
    address = f"sqlite:///{tmp_path}/new/control.db"
    with closing(
        TenantStore.open(
            tenant_name="acme",
            tenant_id=TENANT_ID,
            ecosystem=ECOSYSTEM,
            connection_string=address,
            facts=tmp_path / "new" / "facts",
        )
    ) as new:
        restore(made, new, address)
        with new.control.read() as connection:
            assert [row["name"] for row in list_views(connection)] == ["Payments"]
            assert find_note(connection, note.id) == note
            assert category_history(connection, "cost_center", offset=0, limit=9) == versions
            assert created is not None
            assert find_token(connection, token) == created


PASSWORD = "p@ss/w%rd 'quoted' + more"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server that requires a password."""
    with own_postgres_server(PASSWORD) as running:
        yield running


def in_query(server: PostgresServer, **query: str) -> str:
    """Return the address of the server with the password in its query."""
    url = make_url(server.address)
    without = url.set(password="").update_query_dict({"password": PASSWORD, **query})
    return without.render_as_string(hide_password=False)


@pytest.mark.usefixtures("postgresql")
@pytest.mark.parametrize("is_in_query", [False, True], ids=["before the host", "in the query"])
def test_a_password_is_given_wherever_it_stands(server: PostgresServer, tmp_path: Path, is_in_query: bool) -> None:
    """The password is accepted from either place of the address."""
    address = in_query(server) if is_in_query else server.address
    run_client(make_url(address), "pg_dump", f"--file={tmp_path / 'dump'}")
    assert "PostgreSQL database dump complete" in (tmp_path / "dump").read_text()


@pytest.mark.usefixtures("postgresql")
def test_a_wrong_password_is_an_error_without_it(server: PostgresServer, tmp_path: Path) -> None:
    """The error has the server's message, without the password."""
    url = make_url(server.address).set(password="wrong-hunter2")
    with pytest.raises(StorageError, match=r"pg_dump failed: .*password authentication failed") as raised:
        run_client(url, "pg_dump", f"--file={tmp_path / 'dump'}")
    assert "hunter2" not in str(raised.value)


@pytest.mark.usefixtures("postgresql")
def test_no_secret_is_among_the_words_of_a_process(server: PostgresServer, tmp_path: Path) -> None:
    """While the program runs, neither the password nor that of the client's key is in the list of processes."""
    url = make_url(in_query(server, sslpassword="key-s3cret"))
    with psycopg.connect(make_conninfo(**connection_parameters(make_url(server.address)))) as blocker:
        blocker.execute("CREATE TABLE held (x integer)")
        blocker.commit()
        blocker.execute("LOCK TABLE held IN ACCESS EXCLUSIVE MODE")
        dumping = threading.Thread(target=run_client, args=(url, "pg_dump", f"--file={tmp_path / 'dump'}"))
        dumping.start()
        words = wait_for_words(str(tmp_path / "dump"))
        blocker.rollback()
        dumping.join()
    assert b"postgres" in words
    for secret in (PASSWORD, "p@ss", "key-s3cret"):
        assert secret.encode() not in words
    assert "PostgreSQL database dump complete" in (tmp_path / "dump").read_text()


def wait_for_words(part: str) -> bytes:
    """Return the arguments of the running process that contain ``part``."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if part.encode() in words:
                return words
        time.sleep(0.01)
    raise AssertionError("the program did not start")


@pytest.mark.usefixtures("postgresql")
def test_parameters_are_those_of_the_service(server: PostgresServer, tmp_path: Path) -> None:
    """The query of a connection string is passed to the program unchanged, including blanks."""
    url = make_url("postgresql+psycopg://me:pw@db:6543/acme?options=-c%20lock_timeout%3D5s&sslmode=require")
    assert connection_parameters(url) == {
        "host": "db",
        "port": "6543",
        "user": "me",
        "password": "pw",
        "dbname": "acme",
        "options": "-c lock_timeout=5s",
        "sslmode": "require",
    }
    blanks = make_url(in_query(server, application_name="a b", options="-c lock_timeout=5s"))
    run_client(blanks, "pg_dump", f"--file={tmp_path / 'dump'}")


@pytest.mark.usefixtures("postgresql")
def test_a_missing_program_is_named(server: PostgresServer) -> None:
    """If the client programs are not installed, the error says what to install."""
    with pytest.raises(StorageError, match="pg_nothing is not installed here"):
        run_client(make_url(server.address), "pg_nothing")


@pytest.mark.usefixtures("postgresql")
def test_a_secret_beside_a_service_of_the_operators(server: PostgresServer) -> None:
    """A secret that only a service file can hold must be in the service file that the address has."""
    with pytest.raises(StorageError, match="sslpassword: put it into the service file"):
        run_client(make_url(in_query(server, service="mine", sslpassword="x")), "pg_dump")
