"""Real databases for tests: a scratch SQLite file, or a scratch database of the PostgreSQL server at hand.

The server is named by ``CHARGEBACK_TEST_POSTGRES`` (an address of a database in which others may be created), by
default the one on this machine. No server is a failure, not a skip.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from chargeback.store.control.database import ControlDatabase

KINDS = ("sqlite", "postgresql")
SERVER = os.environ.get("CHARGEBACK_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


@contextmanager
def scratch_database(kind: str, folder: Path) -> Iterator[str]:
    """The connection string of an empty database, which is gone afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'control.db'}"
        return
    name = f"chargeback_test_{uuid.uuid4().hex[:12]}"
    try:
        server = psycopg.connect(SERVER, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        pytest.fail(
            f"these tests need a PostgreSQL server; start one, or name it in CHARGEBACK_TEST_POSTGRES: {error}",
            pytrace=False,
        )
    with server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield make_url(SERVER).set(database=name).render_as_string(hide_password=False)
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    server.close()


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
