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
from chargeback.store.queries.partials import lacks_partials, make_partials

log = logging.getLogger(__name__)


class PartialsWriter:
    """Creates the partial aggregates of datasets while their days are written: those of a week as soon as a day of
    another week is written, and those of the last week at the end."""

    def __init__(self, facts: FactTables, *datasets: Dataset) -> None:
        self._facts = facts
        self._datasets = datasets
        self._week: DayRange | None = None
        self._engine: QueryEngine | None = None

    def day_written(self, day: date) -> None:
        """Note that a day was committed."""
        if self._week != week_of(day):
            self._write_week()
        self._week = week_of(day)

    def close(self) -> None:
        """Create the aggregates of the last week."""
        self._write_week()
        if self._engine is not None:
            self._engine.close()

    def _write_week(self) -> None:
        week, self._week = self._week, None
        if week is None:
            return
        with _log_errors():
            # Opening an engine takes as long as summing a week.
            self._engine = self._engine or QueryEngine()
            with self._engine.cursor(CancellationToken()) as cursor:
                for dataset in self._datasets:
                    files = self._facts.snapshot(dataset.table).within(week)
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
