"""Many tenants, most of them without news: what a worker needs for a round of all.

The tenants are small ones with a provider in this process, so that only the service's own time is measured. Their
control data is in SQLite files, or in schemas of one PostgreSQL database. Of those with SQLite, the first few get their
days by a run, and the others are copies of the first: what a first round costs is the same for each of them.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.backfill import wall_and_cpu
from benchmarks.measure import Figure
from chargeback.demo.config import CUTOFF_DAYS, demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer

#: How many days of bills each tenant has.
_DAYS: Final = 6
_FIRST: Final = "first round"
#: What the name of the round ends with in which some tenants have news.
CORRECTED: Final = "with a corrected bill"
#: Rounds in an hour, with the default of ``features.refresh_interval``.
ROUNDS_PER_HOUR: Final = 2
_CHANGING_SHARE: Final = 100
#: So many tenants with SQLite run their first round; the others are copies.
_RUN_AT_FIRST: Final = 10


def fleet(scratch: Path, *, tenants: int, postgres: str | None) -> Iterator[Figure]:
    """Measure the first round of ``tenants`` new tenants, one without news, and one with news of one in a hundred.

    ``postgres`` is the connection string of an empty database; None stands for a SQLite file for each tenant.
    """
    changing = max(1, tenants // _CHANGING_SHARE)
    spec = DemoSpec(today=datetime.now(UTC).date(), size="small", days=_DAYS + CUTOFF_DAYS)
    organisation = Organisation.generate(spec)
    group = f"fleet of {tenants:,} tenants, {'SQLite' if postgres is None else 'PostgreSQL'}"
    with DemoServer(organisation) as quiet, DemoServer(organisation) as busy:
        servers = [busy if number < changing else quiet for number in range(tenants)]
        run_at_first = tenants if postgres is not None else min(_RUN_AT_FIRST, tenants)

        def _round(name: str, count: int) -> Iterator[Figure]:
            config = scratch / "fleet.yaml"
            config.write_text(_configuration(servers[:count], scratch, postgres), encoding="utf-8")
            command = [sys.executable, "-m", "chargeback", "run", "--config", str(config)]
            before = _requests(quiet, busy)
            wall, cpu = wall_and_cpu(command, scratch / "fleet.log")
            requests = _requests(quiet, busy) - before
            note = f"{wall:.0f} s in all"
            yield Figure(group, f"{name}: own CPU of a tenant", cpu * 1000 / count, "ms", note=note)
            yield Figure(group, f"{name}: requests of a tenant", requests / count, "")
            if count == tenants and name != _FIRST:
                yield Figure(group, f"{name}: own CPU of an hour", cpu * ROUNDS_PER_HOUR, "s")
                yield Figure(group, f"{name}: requests of an hour", requests * ROUNDS_PER_HOUR, "")

        yield from _round(_FIRST, run_at_first)
        for number in range(run_at_first, tenants):
            shutil.copytree(scratch / _name(0), scratch / _name(number))
        yield from _round("nothing new", tenants)
        busy.changes.edit_costs(spec.last_cost_day, _correct)
        yield from _round(f"{changing} {CORRECTED}", tenants)


def _correct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let the first line of a day cost a cent more."""
    first = rows[0] | {"amount": rows[0]["amount"] + Decimal("0.01")}
    return [first, *rows[1:]]


def _requests(*servers: DemoServer) -> int:
    return sum(server.requests.total() for server in servers)


def _name(number: int) -> str:
    """Return the name of a tenant."""
    return f"t{number:04}"


def _configuration(servers: list[DemoServer], folder: Path, postgres: str | None) -> str:
    """Return the configuration of a tenant for each of the servers."""
    tenants = {}
    for number, server in enumerate(servers):
        name = _name(number)
        home = folder / name
        home.mkdir(exist_ok=True)
        tenant = yaml.safe_load(demo_configuration(server.info, home))["tenants"]["acme"]
        del tenant["currencies"]
        if postgres is not None:
            tenant["storage"] = {
                "connection_string": postgres,
                "database_schema": name,
                "facts_path": str(home / "facts"),
            }
        tenants[name] = tenant
    return yaml.safe_dump({"logging": {"level": "ERROR"}, "tenants": tenants}, sort_keys=False)
