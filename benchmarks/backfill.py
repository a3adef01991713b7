"""The first run of a new tenant: 200 days from a provider that responds at once, so that only the service's own time
remains.

``python -m benchmarks.backfill FACTS COPY`` is the floor: it calculates the stored days of a tenant again, writes the
same rows to other tables, and prints the CPU time in seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Figure
from benchmarks.storage import replace_tables, tables_in
from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.demo.config import CUTOFF_DAYS, ServerInfo, demo_configuration
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    USAGE_TABLE,
    FactTables,
    read_day,
)


def backfill(scratch: Path, *, days: int, topics: bool) -> Iterator[Figure]:
    """Measure CPU and time of ``chargeback run`` over ``days`` days of the demo's usual organisation."""
    command = [sys.executable, "-m", "chargeback.demo.server", "--size", "usual", "--days", str(days + CUTOFF_DAYS)]
    provider = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert provider.stdout is not None
        info = ServerInfo.from_json(provider.stdout.readline())
        folder = scratch / f"backfill-{'with' if topics else 'without'}-topics"
        folder.mkdir(parents=True)
        config = folder / "chargeback.yaml"
        text = demo_configuration(info, folder, topic_attribution=topics)
        config.write_text("logging: {level: ERROR}\n" + text, encoding="utf-8")
        wall, cpu, _ = used_by([sys.executable, "-m", "chargeback", "run", "--config", str(config)], folder / "run.log")
    finally:
        provider.terminate()
        provider.wait()
    written = tables_in(folder / "acme.facts").snapshot(CHARGEBACKS_TABLE)
    if len(written.days) != days:
        raise RuntimeError(f"the backfill wrote {len(written.days)} of {days} days")
    name = "with topics" if topics else "without topics"
    yield Figure(
        f"backfill, {days} days",
        f"own CPU, {name}",
        cpu,
        "s",
        None if topics else _floor(folder / "acme.facts", folder / "copy.facts"),
        note=f"{wall:.1f} s in all, {written.rows:,} rows",
    )


def _floor(facts: Path, copy: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.backfill", str(facts), str(copy)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def calculate_again(facts: FactTables, copy: FactTables) -> float:
    """Calculate every stored day and write all its rows to ``copy``; return the CPU seconds of this process so far.

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
    sys.stdout.write(f"{calculate_again(tables_in(Path(sys.argv[1])), tables_in(Path(sys.argv[2])))}\n")
