"""Many tenants, most of them unchanged: the cost for a worker of one round through all of them.

The tenants are small and have a provider in this process, so that only the service's own time is measured. There are
two fleets: one with SQLite files and folders, and one with schemas of a PostgreSQL database and a bucket. The first few
tenants get their days by a run, and the others are copies of the first: a first round costs the same for each.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Protocol

import obstore
import psycopg
import yaml
from tests.support.databases import scratch_database
from tests.support.objects import object_server

from benchmarks.backfill import used_by
from benchmarks.measure import Figure
from chargeback.demo.config import CUTOFF_DAYS, demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer

#: How many days of bills each tenant has.
_DAYS: Final = 6
_FIRST: Final = "first round"
#: The end of the name of the round in which some tenants have changes.
CORRECTED: Final = "with a corrected bill"
#: Rounds in an hour, with the default of ``features.refresh_interval``.
ROUNDS_PER_HOUR: Final = 2
_CHANGING_SHARE: Final = 100
#: The number of tenants that run their first round; the others are copies.
_RUN_AT_FIRST: Final = 10
#: The names of the fleets.
FILES: Final = "SQLite and folders"
SHARED: Final = "PostgreSQL and a bucket"


class _Places(Protocol):
    """The places where the tenants of a fleet store their data."""

    name: str

    def storage(self, tenant: str) -> dict[str, Any] | None:
        """Return the storage of a tenant for its configuration; None is the default."""

    def copy(self, tenant: str, copies: list[str]) -> None:
        """Copy the data of one tenant to others."""


class _Files:
    """A SQLite file and a folder for each tenant."""

    name = FILES

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def storage(self, tenant: str) -> dict[str, Any] | None:
        """Return None: the files are in the folder of the tenant."""

    def copy(self, tenant: str, copies: list[str]) -> None:
        """Copy the folder."""
        for each in copies:
            shutil.copytree(self._folder / tenant, self._folder / each)


class _Shared:
    """A schema of one database and a prefix of one bucket for each tenant."""

    name = SHARED

    def __init__(self, database: str) -> None:
        self._database = database
        self._server = object_server()
        self._root = str(self._server.location())

    def storage(self, tenant: str) -> dict[str, Any]:
        """Return the schema and the prefix of a tenant."""
        return {
            "connection_string": self._database,
            "database_schema": tenant,
            "facts_path": f"{self._root}/{tenant}",
            "object_store": self._server.written,
        }

    def copy(self, tenant: str, copies: list[str]) -> None:
        """Write the schema under other names, and copy the objects within the bucket."""
        dump = ["pg_dump", "--no-owner", "--inserts", f"--schema={tenant}", self._database]
        written = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
        # Lines with a backslash are commands of psql.
        schema = "\n".join(each for each in written.splitlines() if not each.startswith("\\"))
        for each in copies:
            with psycopg.connect(self._database) as connection:
                connection.execute(schema.replace(tenant, each).encode())
        bucket = self._server.raw(self._root.rpartition("/")[2])
        paths = [each["path"] for page in obstore.list(bucket, f"{tenant}/") for each in page]

        def _copy(to: str) -> None:
            for path in paths:
                obstore.copy(bucket, path, path.replace(tenant, to, 1))

        with ThreadPoolExecutor() as threads:
            list(threads.map(_copy, copies))


def fleet(scratch: Path, *, tenants: int) -> Iterator[Figure]:
    """Measure the first round of new tenants, one without changes, and one in which one tenant in a hundred has
    changes."""
    files = scratch / "files"
    files.mkdir()
    yield from _fleet(files, _Files(files), tenants)
    shutil.rmtree(files)
    shared = scratch / "shared"
    shared.mkdir()
    with scratch_database("postgresql", scratch) as database:
        yield from _fleet(shared, _Shared(database), tenants)


def _fleet(scratch: Path, places: _Places, tenants: int) -> Iterator[Figure]:
    """Measure the rounds of one fleet."""
    changing = max(1, tenants // _CHANGING_SHARE)
    spec = DemoSpec(today=datetime.now(UTC).date(), size="small", days=_DAYS + CUTOFF_DAYS)
    organisation = Organisation.generate(spec)
    group = f"fleet of {tenants:,} tenants, {places.name}"
    with DemoServer(organisation) as quiet, DemoServer(organisation) as busy:
        servers = [busy if number < changing else quiet for number in range(tenants)]
        run_at_first = min(_RUN_AT_FIRST, tenants)

        def _round(name: str, count: int) -> Iterator[Figure]:
            config = scratch / "fleet.yaml"
            config.write_text(_configuration(servers[:count], scratch, places), encoding="utf-8")
            command = [sys.executable, "-m", "chargeback", "run", "--config", str(config)]
            before = _requests(quiet, busy)
            wall, cpu, peak = used_by(command, scratch / "fleet.log")
            requests = _requests(quiet, busy) - before
            note = f"{wall:.0f} s in all"
            yield Figure(group, f"{name}: own CPU of a tenant", cpu * 1000 / count, "ms", note=note)
            yield Figure(group, f"{name}: requests of a tenant", requests / count, "")
            # All tenants of a worker are in its memory; the processes of its runs are smaller.
            yield Figure(group, f"{name}: peak memory of the worker", peak, "MiB")
            if count == tenants and name != _FIRST:
                yield Figure(group, f"{name}: own CPU of an hour", cpu * ROUNDS_PER_HOUR, "s")
                yield Figure(group, f"{name}: requests of an hour", requests * ROUNDS_PER_HOUR, "")

        yield from _round(_FIRST, run_at_first)
        places.copy(_name(0), [_name(number) for number in range(run_at_first, tenants)])
        yield from _round("nothing new", tenants)
        busy.changes.edit_costs(spec.last_cost_day, _correct)
        yield from _round(f"{changing} {CORRECTED}", tenants)


def _correct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add a cent to the first line of a day."""
    first = rows[0] | {"amount": rows[0]["amount"] + Decimal("0.01")}
    return [first, *rows[1:]]


def _requests(*servers: DemoServer) -> int:
    return sum(server.requests.total() for server in servers)


def _name(number: int) -> str:
    """Return the name of a tenant."""
    return f"t{number:04}"


def _configuration(servers: list[DemoServer], folder: Path, places: _Places) -> str:
    """Return the configuration of a tenant for each of the servers."""
    tenants = {}
    for number, server in enumerate(servers):
        name = _name(number)
        home = folder / name
        home.mkdir(exist_ok=True)
        tenant = yaml.safe_load(demo_configuration(server.info, home))["tenants"]["acme"]
        del tenant["currencies"]
        if (storage := places.storage(name)) is not None:
            tenant["storage"] = storage
        tenants[name] = tenant
    return yaml.safe_dump({"logging": {"level": "ERROR"}, "tenants": tenants}, sort_keys=False)
