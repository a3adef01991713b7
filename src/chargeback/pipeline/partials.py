"""Partial aggregates: created by the run that writes the days, so that no query has to wait for them.

They are a cache: an error here makes queries slower, but never fails a run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

from chargeback.errors import LeaseLost, StorageError
from chargeback.model.days import DayRange, week_of
from chargeback.pipeline.run_context import RunContext
from chargeback.store.facts.partial_files import by_week
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.datasets import DATASETS, Dataset
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.partials import ROWS_AT_ONCE, lacks_partials, make_partials

log = logging.getLogger(__name__)


class PartialsWriter:
    """Creates the partial aggregates of datasets while their days are written: those of whole weeks as soon as these
    have many rows, and those of the last weeks at the end."""

    def __init__(self, facts: FactTables, *datasets: Dataset) -> None:
        self._facts = facts
        self._datasets = datasets
        self._weeks: list[DayRange] = []
        self._rows = 0
        self._engine: QueryEngine | None = None

    def day_written(self, day: date, rows: int) -> None:
        """Note that a day was committed, with so many rows."""
        week = week_of(day)
        if week not in self._weeks:
            if self._rows >= ROWS_AT_ONCE:
                self._write_weeks()
            self._weeks.append(week)
        self._rows += rows

    def close(self) -> None:
        """Create the aggregates of the last weeks."""
        self._write_weeks()
        if self._engine is not None:
            self._engine.close()

    def _write_weeks(self) -> None:
        weeks, self._weeks, self._rows = self._weeks, [], 0
        if not weeks:
            return
        with _log_errors():
            self._engine = self._engine or QueryEngine()
            with self._engine.cursor(CancellationToken()) as cursor:
                for dataset in self._datasets:
                    snapshot = self._facts.snapshot(dataset.table)
                    files = [file for week in weeks for file in snapshot.within(week)]
                    make_partials(cursor, self._facts.partials, dataset, files)


def complete_partials(run: RunContext) -> None:
    """Create the partial aggregates that are missing after an upgrade, a restored backup, or damage.

    Raises:
        Stopped: the run was asked to stop.
    """
    facts = run.store.facts
    with _log_errors():
        lacking = [
            (dataset, files)
            for dataset in DATASETS
            for files in by_week(facts.snapshot(dataset.table).files).values()
            if lacks_partials(facts.partials, dataset, files)
        ]
        if not lacking:
            return
        with QueryEngine() as engine, engine.cursor(CancellationToken()) as cursor:
            for dataset, files in lacking:
                run.check()
                make_partials(cursor, facts.partials, dataset, files)


@contextmanager
def _log_errors() -> Iterator[None]:
    try:
        yield
    except LeaseLost:
        raise
    except (StorageError, OSError) as error:
        log.warning("partial aggregates are not complete, queries read the rows instead: %s", error)
