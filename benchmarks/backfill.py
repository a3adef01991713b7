"""The first run of a new tenant: 200 days from a provider that answers at once, so that what remains is our own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure
from chargeback.demo.config import CUTOFF_DAYS, ServerInfo, demo_configuration
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables


def backfill(scratch: Path, *, days: int, topics: bool) -> Iterator[Figure]:
    """CPU and time of ``chargeback run`` over ``days`` days of the demo's usual organisation."""
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
        wall, cpu = _run([sys.executable, "-m", "chargeback", "run", "--config", str(config)], folder / "run.log")
    finally:
        provider.terminate()
        provider.wait()
    written = FactTables(folder / "acme.facts").snapshot(CHARGEBACKS_TABLE)
    if len(written.days) != days:
        raise RuntimeError(f"the backfill wrote {len(written.days)} of {days} days")
    name = "with topics" if topics else "without topics"
    yield Figure(
        f"backfill, {days} days",
        f"own CPU, {name}",
        cpu,
        "s",
        bar=30 if days == 200 else None,
        note=f"{wall:.1f} s in all, {written.rows:,} rows",
    )


def _run(command: list[str], log: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a process and of all that it started.

    Raises:
        RuntimeError: it failed; the message has the end of what it said.
    """
    start = time.perf_counter()
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the run ended with exit code {process.returncode}: {log.read_text()[-500:]}")
    return wall, used.ru_utime + used.ru_stime
