"""Runs of the service as processes: their exit codes, their output, and their records."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from chargeback.store.control import schema
from chargeback.store.tenant import TenantStore


@dataclass(frozen=True)
class Ended:
    """A process that ended by itself: its exit code and output."""

    code: int
    said: str


@dataclass(frozen=True)
class Recorded:
    """A run in the control database."""

    outcome: str
    errors: tuple[str, ...]


def run_to_its_end(
    config: Path, *words: str, under: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Ended:
    """Execute ``chargeback run`` with further ``words``, with the prefix ``under``; fail if it hangs."""
    process = subprocess.run(
        [*under, sys.executable, "-m", "chargeback", "run", *words, "--config", str(config)],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    return Ended(process.returncode, process.stdout)


def recorded_runs(store: TenantStore) -> list[Recorded]:
    """Return all recorded runs, oldest first."""
    query = select(schema.runs.c.outcome, schema.runs.c.errors).order_by(schema.runs.c.run_id)
    with store.control.read() as connection:
        return [Recorded(row.outcome, tuple(row.errors)) for row in connection.execute(query)]
