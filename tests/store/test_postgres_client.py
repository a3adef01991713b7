"""PostgreSQL's programs reach the database that the service reaches, and nobody overhears the secrets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from sqlalchemy import make_url

from chargeback.errors import StorageError
from chargeback.store.backup import connection_parameters, run_client
from tests.support.databases import PostgresServer, own_postgres_server

pytestmark = pytest.mark.usefixtures("postgresql")

PASSWORD = "p@ss/w%rd 'quoted' + more"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL that lets nobody in without the password."""
    with own_postgres_server(PASSWORD) as running:
        yield running


def in_query(server: PostgresServer, **query: str) -> str:
    """The address of the server with the password in its query."""
    url = make_url(server.address)
    without = url.set(password="").update_query_dict({"password": PASSWORD, **query})
    return without.render_as_string(hide_password=False)


@pytest.mark.parametrize("is_in_query", [False, True], ids=["before the host", "in the query"])
def test_a_password_is_given_wherever_it_stands(server: PostgresServer, tmp_path: Path, is_in_query: bool) -> None:
    """A server that asks for a password is let in to, with the password in either place."""
    address = in_query(server) if is_in_query else server.address
    run_client(make_url(address), "pg_dump", f"--file={tmp_path / 'dump'}")
    assert "PostgreSQL database dump complete" in (tmp_path / "dump").read_text()


def test_a_wrong_password_is_an_error_without_it(server: PostgresServer, tmp_path: Path) -> None:
    """What the server says is told; the password is not."""
    url = make_url(server.address).set(password="wrong-hunter2")
    with pytest.raises(StorageError, match=r"pg_dump failed: .*password authentication failed") as raised:
        run_client(url, "pg_dump", f"--file={tmp_path / 'dump'}")
    assert "hunter2" not in str(raised.value)


def test_no_secret_is_among_the_words_of_a_process(server: PostgresServer, tmp_path: Path) -> None:
    """Neither the password nor that of the client's key shows in a list of processes while the program runs."""
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
    """The words of the running process that has ``part`` among them."""
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


def test_parameters_are_those_of_the_service(server: PostgresServer, tmp_path: Path) -> None:
    """What stands in the query of a connection string reaches the program unchanged, blanks included."""
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


def test_a_missing_program_is_named(server: PostgresServer) -> None:
    """Where the client programs are not installed, the error says what to install."""
    with pytest.raises(StorageError, match="pg_nothing is not installed here"):
        run_client(make_url(server.address), "pg_nothing")


def test_a_secret_beside_a_service_of_the_operators(server: PostgresServer) -> None:
    """A secret that only a service file can hold belongs into the one that is named already."""
    with pytest.raises(StorageError, match="sslpassword: put it into the service file"):
        run_client(make_url(in_query(server, service="mine", sslpassword="x")), "pg_dump")
