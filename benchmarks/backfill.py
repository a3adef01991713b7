"""The first run of a new tenant: 200 days from a provider that responds at once, so that only the service's own time
remains.

``python -m benchmarks.backfill FACTS COPY`` is the floor: it sends the requests of standard input again, calculates the
stored days of a tenant again, writes the same rows and partial aggregates to other tables, and prints the CPU time in
seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.measure import Figure
from benchmarks.storage import replace_tables, tables_in
from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.demo.config import CUTOFF_DAYS, demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue
from chargeback.model.days import utc_now
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    USAGE_TABLE,
    FactTables,
    read_day,
)
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.partials import make_partials


def backfill(scratch: Path, *, days: int, topics: bool) -> Iterator[Figure]:
    """Measure CPU and time of ``chargeback run`` over ``days`` days of the demo's usual organisation."""
    organisation = Organisation.generate(DemoSpec(today=utc_now().date(), days=days + CUTOFF_DAYS))
    folder = scratch / f"backfill-{'with' if topics else 'without'}-topics"
    folder.mkdir(parents=True)
    config = folder / "chargeback.yaml"
    with DemoServer(organisation) as server:
        text = demo_configuration(server.info, folder, topic_attribution=topics)
        config.write_text("logging: {level: ERROR}\n" + text, encoding="utf-8")
        wall, cpu, _ = used_by([sys.executable, "-m", "chargeback", "run", "--config", str(config)], folder / "run.log")
        floor = None if topics else _floor(server, folder / "acme.facts", folder / "copy.facts")
    written = tables_in(folder / "acme.facts").snapshot(CHARGEBACKS_TABLE)
    if len(written.days) != days:
        raise RuntimeError(f"the backfill wrote {len(written.days)} of {days} days")
    name = "with topics" if topics else "without topics"
    yield Figure(
        f"backfill, {days} days",
        f"own CPU, {name}",
        cpu,
        "s",
        floor,
        note=f"{wall:.1f} s in all, {written.rows:,} rows",
    )


def _floor(server: DemoServer, facts: Path, copy: Path) -> float:
    """Return the CPU seconds of the same work without a run around it."""
    # Flink's regions, one request each, have other credentials.
    asked = [each for each in server.log if not each[0].startswith("/flink/")]
    addresses = [f"{server.url}{path}?{parameters}" for path, parameters in asked]
    given = json.dumps({"auth": [server.key, server.secret], "addresses": addresses})
    command = [sys.executable, "-m", "benchmarks.backfill", str(facts), str(copy)]
    return float(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout)


def read_again(addresses: Iterable[str], auth: tuple[str, str]) -> None:
    """Send requests to the provider, one after the other, and parse the responses.

    Raises:
        httpx.HTTPStatusError: the provider refuses one.
    """
    with httpx.Client(auth=auth) as client:
        for address in addresses:
            json.loads(client.get(address).raise_for_status().content, parse_float=Decimal)


def calculate_again(facts: FactTables, copy: FactTables) -> float:
    """Calculate every stored day, write its rows and their sums to ``copy``, and return the CPU seconds of this process
    so far.

    Reading the stored evidence does not count.
    """
    calculator, register = DayCalculator(catalogue()), DimensionRegister(copy)
    reading = 0.0
    for day in sorted(facts.snapshot(CHARGEBACKS_TABLE).days):
        start = time.process_time()
        stored = {name: read_day(facts, name, day) for name in (BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE)}
        reading += time.process_time() - start
        calculated = calculator.calculate(Evidence(day, *stored.values()))
        register.add(calculated.dimensions)
        replace_tables(copy, day, {**stored, CHARGEBACKS_TABLE: calculated.rows}, register)
    calculator.close()
    with QueryEngine() as engine, engine.cursor(CancellationToken()) as cursor:
        for dataset in (CHARGEBACKS, BILLING_LINES):
            make_partials(cursor, copy.partials, dataset, copy.snapshot(dataset.table).files)
    return time.process_time() - reading


class Used(NamedTuple):
    """What a process used: seconds, CPU seconds with those of its children, and the peak of its resident memory, or
    that of a child if one had more, in MiB."""

    wall: float
    cpu: float
    peak: float


def used_by(command: list[str], log: Path) -> Used:
    """Return what a process and its children used.

    Raises:
        RuntimeError: it failed; the message has the end of its output.
    """
    start = time.perf_counter()
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the run ended with exit code {process.returncode}: {log.read_text()[-500:]}")
    return Used(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


if __name__ == "__main__":
    provider = json.load(sys.stdin)
    read_again(provider["addresses"], tuple(provider["auth"]))
    sys.stdout.write(f"{calculate_again(tables_in(Path(sys.argv[1])), tables_in(Path(sys.argv[2])))}\n")
