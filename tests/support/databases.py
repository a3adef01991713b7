"""Real databases for tests: a scratch SQLite file, or a scratch database of a real PostgreSQL server.

``CHARGEBACK_TEST_POSTGRES`` names a server (an address of a database in which others may be created). Without it a
server of this machine that lets us in is used, else one is started from the installed programs, for the length of the
test session. No server at all is a failure, not a skip.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from chargeback.store.control.database import ControlDatabase

KINDS = ("sqlite", "postgresql")

_LOCAL = "postgresql://postgres@127.0.0.1:5432/postgres"
_MISSING = (
    "these tests need a PostgreSQL server: install one (Debian: apt-get install postgresql), "
    "or name one in CHARGEBACK_TEST_POSTGRES"
)


@contextmanager
def scratch_database(kind: str, folder: Path) -> Iterator[str]:
    """The connection string of an empty database, which is gone afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'control.db'}"
        return
    server = postgres_server()
    name = f"chargeback_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield make_url(server).set(database=name).render_as_string(hide_password=False)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def control_database(kind: str, folder: Path) -> Iterator[ControlDatabase]:
    """A control database of that kind, migrated and empty."""
    with scratch_database(kind, folder) as connection_string:
        database = ControlDatabase(connection_string)
        try:
            database.upgrade()
            yield database
        finally:
            database.close()


@cache
def postgres_server() -> str:
    """The address of a PostgreSQL server in which databases may be made."""
    named = os.environ.get("CHARGEBACK_TEST_POSTGRES")
    if named or _answers(_LOCAL):
        return named or _LOCAL
    programs = _programs()
    if programs is None:
        pytest.fail(_MISSING, pytrace=False)
    return _start(programs)


def _answers(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl; distributions keep it off the PATH."""
    found = shutil.which("initdb")
    candidates = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in candidates if (folder / "initdb").exists()), None)


def _start(programs: Path) -> str:
    """A server of our own on a free port; it refuses to run as root, who lends it the package's own user."""
    folder = Path(tempfile.mkdtemp(prefix="chargeback-postgres-"))
    as_user = []
    if os.getuid() == 0:
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
    control = [*as_user, str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]

    def run(*command: str) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    run(*as_user, str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8")
    run(*control, "-o", options, "start")

    def stop() -> None:
        run(*control, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return f"postgresql://postgres@127.0.0.1:{port}/postgres"
