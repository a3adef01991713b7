"""Real databases for tests: a scratch SQLite file, or a scratch database of a real PostgreSQL server.

``CHARGEBACK_TEST_POSTGRES`` names a server (the address of a database on a server where others may be created). Without
it, an accessible server on this machine is used; if there is none, one is started from the installed programs for the
test session. Without any server, tests fail; they are not skipped.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import URL, Connection, NullPool, create_engine, make_url

from chargeback.config import Tenant
from chargeback.config.storage import in_schema
from chargeback.store.control.database import ControlDatabase
from chargeback.store.facts.earlier_tables import make_catalogue
from chargeback.store.tenant import TenantStore, open_store
from tests.support.hosts import THIS_HOST, Host
from tests.support.outside import declared
from tests.support.processes import free_port

KINDS = ("sqlite", "postgresql")
#: A database of a server with one schema for each tenant.
SCHEMA = "schema"

_LOCAL = "postgresql://postgres@127.0.0.1:5432/postgres"
_MISSING = (
    "these tests need a PostgreSQL server: install one (Debian: apt-get install postgresql), "
    "or name one in CHARGEBACK_TEST_POSTGRES"
)


@contextmanager
def scratch_database(kind: str, folder: Path) -> Iterator[str]:
    """Create an empty database, yield its connection string, and delete it afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'control.db'}"
        return
    with _postgres_database() as connection_string:
        yield connection_string if kind == "postgresql" else with_schema(connection_string, "acme")


def with_schema(connection_string: str, schema: str) -> str:
    """Return the connection string of a tenant with a schema in the database."""
    return in_schema(make_url(connection_string), schema).render_as_string(hide_password=False)


@contextmanager
def migrated_database(kind: str, folder: Path) -> Iterator[str]:
    """Create a migrated but empty database, yield its connection string, and delete it afterwards. It is a copy of a
    database that was migrated once for all tests."""
    if kind == "sqlite":
        place = folder / "control.db"
        shutil.copy(_migrated_file(), place)
        yield f"sqlite:///{place}"
        return
    with _postgres_database(_migrated_template()) as connection_string:
        yield connection_string


def place_migrated(connection_string: str) -> None:
    """Create a migrated but empty SQLite database unless one exists. With PostgreSQL, do nothing."""
    url = make_url(connection_string)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_migrated_file(), url.database)


def open_migrated(tenant: Tenant) -> TenantStore:
    """Open a tenant's storage, with a control database of this version."""
    place_migrated(tenant.storage.connection_string.get_secret_value())
    store = open_store(tenant)
    store.control.upgrade()
    make_catalogue(store.facts)
    return store


@contextmanager
def control_database(kind: str, folder: Path) -> Iterator[ControlDatabase]:
    """Create a control database of that kind, migrated and empty."""
    with migrated_database(kind, folder) as connection_string, closing(ControlDatabase(connection_string)) as database:
        yield database


@contextmanager
def _postgres_database(template: str | None = None) -> Iterator[str]:
    """Create a database on the server of the tests, as a copy of ``template`` if given, and yield its connection
    string."""
    server = postgres_server()
    name = f"chargeback_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
        try:
            yield make_url(server).set(database=name).render_as_string(hide_password=False)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@cache
def _migrated_file() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="chargeback-sqlite-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with closing(ControlDatabase(f"sqlite:///{folder / 'control.db'}")) as database:
        database.upgrade()
    return folder / "control.db"


@cache
def _migrated_template() -> str:
    stack = ExitStack()
    atexit.register(stack.close)
    connection_string = stack.enter_context(_postgres_database())
    with closing(ControlDatabase(connection_string)) as database:
        database.upgrade()
    return str(make_url(connection_string).database)


@contextmanager
def raw_connection(connection_string: str) -> Iterator[Connection]:
    """Open a transaction that does not check the revision of the database."""
    url = make_url(connection_string)
    if url.get_backend_name() == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        yield connection


def postgres_server() -> str:
    """Return the address of a PostgreSQL server where databases can be created."""
    declared("PostgreSQL")
    return _postgres_server()


@cache
def _postgres_server() -> str:
    named = os.environ.get("CHARGEBACK_TEST_POSTGRES")
    if named or _answers(_LOCAL):
        return named or _LOCAL
    server = PostgresServer()
    server.start()
    atexit.register(server.remove)
    return server.address


@contextmanager
def own_postgres_server(password: str | None = None, host: Host = THIS_HOST) -> Iterator[PostgresServer]:
    """Start a separate server; if there is a ``password``, connections require it."""
    server = PostgresServer(password, host)
    try:
        server.start()
        yield server
    finally:
        server.remove()


class PostgresServer:
    """A separate server on a free port. PostgreSQL refuses to run as root; then the package's own user is used.

    Attributes:
        address: its address in its network.
        port: the port on which it listens.
    """

    def __init__(self, password: str | None = None, host: Host = THIS_HOST) -> None:
        programs = _programs()
        if programs is None:
            pytest.fail(_MISSING, pytrace=False)
        self._is_paused = False
        self._folder = Path(tempfile.mkdtemp(prefix="chargeback-postgres-"))
        as_user = []
        if os.getuid() == 0:
            as_user = ["runuser", "-u", "postgres", "--"]
            shutil.chown(self._folder, "postgres", "postgres")
        elif host.within:
            # The user is root on that host, where PostgreSQL refuses to start as root.
            as_user = ["unshare", "--user", "--map-user=1", "--map-group=1"]
        self.port = free_port()
        data = self._folder / "data"
        self.address = URL.create(
            "postgresql", "postgres", password, host.address, self.port, "postgres"
        ).render_as_string(hide_password=False)
        settings = {
            "listen_addresses": host.address,
            "port": self.port,
            "unix_socket_directories": self._folder,
            "fsync": "off",
        }
        self._options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        as_user = [*host.within, *as_user]
        self._control = [*as_user, str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(self._folder / "log")]
        entry = ["-A", "trust"]
        if password is not None:
            (self._folder / "password").write_text(password + "\n", encoding="utf-8")
            entry = ["-A", "scram-sha-256", f"--pwfile={self._folder / 'password'}"]
        self._run(*as_user, str(programs / "initdb"), "-D", str(data), "-U", "postgres", *entry, "-E", "UTF8", "-N")
        with (data / "pg_hba.conf").open("a", encoding="utf-8") as access:
            access.write(f"host all all samenet {entry[1]}\n")

    def start(self) -> None:
        """Start the server, for the first time or again; return when it responds."""
        self._run(*self._control, "-o", self._options, "start")

    def stop(self, mode: str) -> None:
        """Stop the server: ``fast`` rolls back transactions, ``immediate`` is like a crash."""
        self._run(*self._control, "-m", mode, "stop")

    def pause(self) -> None:
        """Suspend the server: it accepts connections and requests, but does not respond."""
        self._is_paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the server."""
        self._signal(signal.SIGCONT)
        self._is_paused = False

    def _signal(self, number: signal.Signals) -> None:
        postmaster = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        for stat in [Path(f"/proc/{postmaster}/stat"), *Path("/proc").glob("[0-9]*/stat")]:
            with suppress(OSError):
                pid, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
                if postmaster in (pid, parent):
                    os.kill(pid, number)

    def remove(self) -> None:
        """Stop the server if it runs, and delete its data."""
        if self._is_paused:
            with suppress(OSError):
                self.resume()
        subprocess.run([*self._control, "-m", "immediate", "stop"], check=False, capture_output=True, cwd=self._folder)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, *command: str) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder)


def _answers(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _programs() -> Path | None:
    """Return the folder of initdb and pg_ctl, which distributions do not add to PATH."""
    found = shutil.which("initdb")
    candidates = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in candidates if (folder / "initdb").exists()), None)
