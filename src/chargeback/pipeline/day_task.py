"""The calculation of a day as a task: evidence and policies in, a written but uncommitted file out.

A task holds no lease and commits nothing, so it may run in any process, and more than once: only a file that the run
receives becomes part of a table. Upkeep removes the files of repeated and abandoned tasks.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import Final

import pyarrow as pa

from chargeback.allocation.columns import WIDE, total_of
from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.allocation.policies import Policy, PolicyCatalogue, policies_hash
from chargeback.errors import WorkersUnavailable
from chargeback.store.control.catalogue import NewContent
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import prepare_day
from chargeback.store.ownership import StorageOwner
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS, RevisedDataset

#: The packages that determine how a day is calculated, and the bytes of its file.
_PACKAGES: Final = ("chargeback", "deltalake", "distributed", "duckdb", "pyarrow")

#: How much of a worker's memory the engine that calculates may use; the rest is for Python's own columns.
_ENGINE_SHARE: Final = 0.4
_LEAST_MEMORY: Final = 128 * 2**20


@dataclass(frozen=True, slots=True)
class NewRows:
    """The new rows of a day: their file, their number, their sum, and the sum of each payer."""

    content: NewContent
    rows: int
    total: Decimal
    sums: Mapping[tuple[str, ...], Decimal]


def prepare_rows(
    place: Place, dataset: RevisedDataset, day: date, rows: pa.Table, owner: StorageOwner | None
) -> NewRows:
    """Write the file of a day's new rows; readers do not see it before it is committed.

    Raises:
        StorageError: it cannot be written.
    """
    content = prepare_day(place, dataset.table, day, rows, owner)
    return NewRows(content, rows.num_rows, total_of(rows["amount"]), sums_by(rows, dataset.payer))


def sums_by(rows: pa.Table, payer: Sequence[str]) -> dict[tuple[str, ...], Decimal]:
    """Return the exact sum of the amounts of each payer."""
    texts = {name: rows[name].cast(pa.string()) for name in payer}
    wide = pa.table({**texts, "amount": rows["amount"].cast(WIDE)})
    sums = wide.group_by(list(payer), use_threads=False).aggregate([("amount", "sum")])
    keys = zip(*(sums[name].to_pylist() for name in payer), strict=True)
    return dict(zip(keys, sums["amount_sum"].to_pylist(), strict=True))


@dataclass(frozen=True)
class DayTask:
    """A day to calculate: the policies, the evidence, the place for the file of its rows, and the tenant that owns
    them. Picklable."""

    place: Place
    catalogue: PolicyCatalogue
    evidence: Evidence
    owner: StorageOwner | None = None


@dataclass(frozen=True)
class FinishedDay:
    """A calculated day: its rows, written but not committed, with their dimensions and policies.

    ``dimensions``, ``unknown_types`` and ``policy_version`` are those of
    :class:`~chargeback.allocation.day.CalculatedDay`; ``charged`` are the identities of the rows.
    """

    rows: NewRows
    dimensions: pa.Table
    policies: Mapping[str, Policy]
    unknown_types: tuple[str, ...]
    charged: frozenset[str]
    policy_version: str | None

    @property
    def policies_hash(self) -> str:
        """Return one hash for all policies that the day's product types have."""
        return policies_hash(self.policies)


def calculate_day(task: DayTask, calculator: DayCalculator) -> FinishedDay:
    """Calculate a day and write its file.

    Raises:
        AllocationError: the amounts of the day do not fit 38 digits.
        StorageError: the file cannot be written.
    """
    day = task.evidence.day
    calculated = calculator.calculate(task.evidence)
    return FinishedDay(
        prepare_rows(task.place, REVISED_CHARGEBACKS, day, calculated.rows, task.owner),
        calculated.dimensions,
        calculated.policies,
        calculated.unknown_types,
        frozenset(calculated.rows["identity_id"].unique().to_pylist()),
        calculated.policy_version,
    )


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and the packages that determine how a day is calculated."""
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
