"""The calculation of a day as a task: evidence and policies in, a written but uncommitted file out.

A task holds no lease and commits nothing, so it may run in any process, and more than once: only a file that the run
receives becomes part of a table. What a repeated or abandoned task has written, upkeep removes.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Final

import pyarrow as pa

from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.allocation.policies import Policy, PolicyCatalogue
from chargeback.errors import WorkersUnavailable
from chargeback.pipeline.new_rows import NewRows, prepare_rows
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS

#: What decides how a day is calculated, and the bytes of its file.
_PACKAGES: Final = ("chargeback", "deltalake", "distributed", "duckdb", "pyarrow")

#: How much of a worker's memory the engine that calculates may use; the rest is for the columns beside it.
_ENGINE_SHARE: Final = 0.4
_LEAST_MEMORY: Final = 128 * 2**20


@dataclass(frozen=True)
class DayTask:
    """A day to calculate: the policies, the evidence, and the place for the file of its rows. Picklable."""

    place: Place
    catalogue: PolicyCatalogue
    evidence: Evidence


@dataclass(frozen=True)
class FinishedDay:
    """A calculated day: its rows, written but not committed, and what they refer to.

    ``dimensions`` and ``unknown_types`` are those of :class:`~chargeback.allocation.day.CalculatedDay`; ``charged`` are
    the identities of the rows.
    """

    rows: NewRows
    dimensions: pa.Table
    policies: Mapping[str, Policy]
    unknown_types: tuple[str, ...]
    charged: frozenset[str]


def calculate_day(task: DayTask, calculator: DayCalculator) -> FinishedDay:
    """Calculate a day and write its file.

    Raises:
        AllocationError: the amounts of the day do not fit 38 digits.
        StorageError: the file cannot be written.
    """
    day = task.evidence.day
    calculated = calculator.calculate(task.evidence)
    return FinishedDay(
        prepare_rows(FactTables(task.place), REVISED_CHARGEBACKS, day, calculated.rows),
        calculated.dimensions,
        calculated.policies,
        calculated.unknown_types,
        frozenset(calculated.rows["identity_id"].unique().to_pylist()),
    )


@cache
def versions() -> dict[str, str]:
    """Return the versions of what decides how a day is calculated."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def different_versions(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Return in words which versions are not as expected; an empty text if all are."""
    different = [name for name in expected if found.get(name) != expected[name]]
    return ", ".join(f"{name} {found.get(name)} instead of {expected[name]}" for name in different)


def calculate_on_worker(task: DayTask, expected: Mapping[str, str]) -> FinishedDay:
    """Calculate a day in a worker of a Dask cluster, within the memory of that worker.

    Raises:
        WorkersUnavailable: the worker has other versions than the run.
        AllocationError: the amounts of the day do not fit 38 digits.
        StorageError: the file cannot be written.
    """
    from distributed import get_worker

    worker = get_worker()
    if difference := different_versions(expected, versions()):
        raise WorkersUnavailable(f"the worker {worker.address} has {difference}")
    threads: int = worker.state.nthreads
    limit = worker.memory_manager.memory_limit
    memory = f"{max(_LEAST_MEMORY, int(limit * _ENGINE_SHARE) // threads)}B" if limit else "1GB"
    calculator = DayCalculator(task.catalogue, threads=1, memory_limit=memory)
    try:
        return calculate_day(task, calculator)
    finally:
        calculator.close()
