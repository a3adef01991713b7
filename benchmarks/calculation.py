"""Calculate and persist: rows per second, memory, and whether memory is independent of the number of days."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Final

import duckdb

from benchmarks.evidence import EvidenceMaker
from benchmarks.measure import Figure, memory_mib, reset_peak
from benchmarks.reference.loop import allocate, new_database
from benchmarks.shapes import FIRST_DAY, HUGE_DAY, LARGE, USUAL, Shape
from benchmarks.storage import replace_tables, tables_in
from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, DIMENSIONS_TABLE, FactTables

_SPAWN: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Calculated:
    """The figures of calculating and persisting equal days, day by day; memory in MiB."""

    rows: int
    seconds: list[float]
    cpu_seconds: list[float]
    peaks: list[float]
    floor_seconds: float
    first_floor_seconds: float
    reference_rows: float


def calculation(*, quick: bool) -> Iterator[Figure]:
    """Measure days of three sizes, each in a separate process."""
    for shape, days in ((USUAL, 60), (LARGE, 10), (HUGE_DAY, 6)):
        if quick and shape is HUGE_DAY:
            continue
        found = _in_a_process(shape, 10 if quick else days)
        group = f"calculate, {found.rows:,} rows a day"
        yield Figure(
            group,
            "a day like the one before",
            found.rows / min(found.seconds[1:]),
            "rows/s",
            found.rows / found.floor_seconds,
            found.reference_rows,
            more_is_better=True,
            note=f"{min(found.cpu_seconds[1:]) * 1000:.0f} ms CPU a day; the floor only writes the rows",
        )
        yield Figure(
            group,
            "the first day, all dimensions new",
            found.rows / found.seconds[0],
            "rows/s",
            found.rows / found.first_floor_seconds,
            more_is_better=True,
            note=f"{found.cpu_seconds[0] * 1000:.0f} ms CPU; the floor only writes the rows and their dimensions",
        )
        yield Figure(group, "peak memory", max(found.peaks), "MiB")
        settled = found.peaks[1:]
        middle = len(settled) // 2
        growth = median(settled[middle:]) - median(settled[:middle])
        note = f"from the first half of the {len(settled)} days after the first to the second, by their medians"
        yield Figure(group, "growth of the peak, day by day", growth, "MiB", note=note)


def _in_a_process(shape: Shape, days: int) -> Calculated:
    receiving, sending = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=_calculate, args=(shape, days, sending))
    process.start()
    sending.close()
    try:
        found: Calculated = receiving.recv()
    finally:
        process.join()
    return found


def _calculate(shape: Shape, days: int, sending: multiprocessing.connection.Connection) -> None:
    folder = Path(tempfile.mkdtemp(prefix="chargeback-bench-"))
    maker = EvidenceMaker(shape)
    made = maker.day(FIRST_DAY)
    maker.close()
    facts = tables_in(folder / "facts")
    calculator, register = DayCalculator(catalogue()), DimensionRegister(facts)
    seconds, cpu_seconds, peaks, rows = [], [], [], 0
    for number in range(days):
        day = FIRST_DAY + timedelta(days=number)
        evidence = Evidence(day, made.billing, made.usage, made.members)
        reset_peak()
        start, cpu = time.perf_counter(), time.process_time()
        calculated = calculator.calculate(evidence)
        register.add(calculated.dimensions)
        replace_tables(facts, day, {CHARGEBACKS_TABLE: calculated.rows}, register)
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu)
        peaks.append(memory_mib(peak=True))
        rows = calculated.rows.num_rows
        del calculated
    calculator.close()
    floor = _rewrite(facts, CHARGEBACKS_TABLE, folder / "floor.parquet")
    first_floor = floor + _rewrite(facts, DIMENSIONS_TABLE, folder / "floor.parquet")
    reference = _reference(made, folder / "reference.db") if rows < 100_000 else _reference_of_a_smaller_day(folder)
    shutil.rmtree(folder)
    sending.send(Calculated(rows, seconds, cpu_seconds, peaks, floor, first_floor, reference))


def _rewrite(facts: FactTables, table: str, to: Path) -> float:
    """Measure the floor: DuckDB reads and writes the last file of a table."""
    file = facts.snapshot(table).files[-1].path
    with duckdb.connect(config={"threads": 2}) as database:
        taken = []
        for _ in range(2):
            start = time.perf_counter()
            database.execute(f"COPY (FROM read_parquet('{file}')) TO '{to}' (FORMAT parquet, CODEC zstd)")
            taken.append(time.perf_counter() - start)
    return min(taken)


def _reference(evidence: Evidence, file: Path) -> float:
    """Return rows per second of the obvious implementation."""
    database = new_database(str(file))
    start = time.perf_counter()
    rows = allocate(evidence, database)
    taken = time.perf_counter() - start
    database.close()
    return rows / taken


def _reference_of_a_smaller_day(folder: Path) -> float:
    """Measure the reference on a smaller day: its speed does not depend on the size of the day, but a large one takes
    too long."""
    maker = EvidenceMaker(LARGE)
    try:
        return _reference(maker.day(FIRST_DAY), folder / "reference.db")
    finally:
        maker.close()


def calculate_for(shape: Shape, seconds: float) -> None:
    """Calculate the same day repeatedly for ``seconds``, in a separate process."""
    maker = EvidenceMaker(shape)
    evidence = maker.day(FIRST_DAY)
    maker.close()
    calculator = DayCalculator(catalogue())
    ending = time.perf_counter() + seconds
    while time.perf_counter() < ending:
        calculator.calculate(evidence)
    calculator.close()
