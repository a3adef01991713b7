"""What emitters are told of a tenant: its facts and its inventory, as far as they may look back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Final, TypeVar

import pyarrow as pa

from chargeback.emitters.contract import DAILY, MONTHLY, OTHER, WEEKLY, Existing, Period, Sum
from chargeback.errors import QueryTimeout
from chargeback.model.days import DayRange
from chargeback.pipeline.job import Job
from chargeback.store.control.emissions import existing_on
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE
from chargeback.store.queries.daily import daily_sums, instants_of, is_finer_than, stored_rows
from chargeback.store.queries.engine import Cursor, QueryEngine, Question
from chargeback.store.queries.export import DEFAULT_COLUMNS, csv_chunks
from chargeback.store.queries.filters import Filters
from chargeback.store.queries.tags import TagBooks
from chargeback.store.tenant import TenantStore

_T = TypeVar("_T")

#: The unit of time by which rows are summed, by aggregation; hourly rows are as fine as rows can be.
_UNITS: Final = {DAILY: "day", WEEKLY: "week", MONTHLY: "month"}
_LOOK_SECONDS = 0.1


def sums_of(batches: Iterator[pa.RecordBatch], by: Sequence[str]) -> Iterator[Sum]:
    """The rows of :func:`chargeback.store.queries.daily.daily_sums`, one by one."""
    for batch in batches:
        days, amounts = batch.column("date").to_pylist(), batch.column("amount").to_pylist()
        values = zip(*(batch.column(name).to_pylist() for name in by), strict=True) if by else [()] * len(days)
        for day, of_row, amount in zip(days, values, amounts, strict=True):
            yield Sum(day, tuple(of_row), amount)


class StoredSums:
    """Sums and inventory of one tenant, asked through one cursor; what a single scrape needs."""

    def __init__(self, store: TenantStore, cursor: Cursor) -> None:
        self._store = store
        self._cursor = cursor

    def charged(self, days: DayRange, by: Sequence[str], most: int | None = None) -> Iterator[Sum]:
        """Sums of chargebacks, see :class:`chargeback.emitters.contract.Facts`."""
        limit = None if most is None else (most, OTHER)
        return sums_of(daily_sums(self._cursor, self._store.facts, CHARGEBACKS_TABLE, days, by, limit), by)

    def billed(self, days: DayRange, by: Sequence[str]) -> Iterator[Sum]:
        """Sums of billing lines."""
        return sums_of(daily_sums(self._cursor, self._store.facts, BILLING_TABLE, days, by), by)

    def existing(self, days: Sequence[date]) -> Mapping[date, Existing]:
        """The inventory of each of these days."""
        with self._store.control.read() as connection:
            resources, identities = (existing_on(connection, kind, days) for kind in (RESOURCES, IDENTITIES))
        return {day: Existing(resources[day], identities[day]) for day in days}


class StoredFacts:
    """The facts of one tenant, for its emitters; see :class:`chargeback.emitters.contract.Facts`.

    ``check`` raises when the work is to end; what is being asked is then interrupted through the ``question``.
    ``days`` are those that the present emitter may see.
    """

    def __init__(self, store: TenantStore, engine: QueryEngine, question: Question, check: Callable[[], None]) -> None:
        self._store = store
        self._engine = engine
        self._question = question
        self._check = check
        self.days: Sequence[date] = ()
        with store.control.read() as connection:
            self._book = TagBooks().of(store.tenant_name, connection)

    def rows(self, period: Period) -> Iterator[pa.RecordBatch]:
        """The rows of a period as they are stored."""
        return self._ask(lambda cursor: stored_rows(cursor, self._store.facts, period.days))

    def csv(self, period: Period) -> Iterator[memoryview]:
        """The rows of a period as CSV."""
        return self._ask(lambda cursor: self._csv(cursor, period))

    def _csv(self, cursor: Cursor, period: Period) -> Iterator[memoryview]:
        facts, unit = self._store.facts, _UNITS.get(period.aggregation)
        per = unit if unit and is_finer_than(cursor, facts, period.days, unit) else None
        window = instants_of(period.days)
        return csv_chunks(cursor, facts, window, Filters(), DEFAULT_COLUMNS, self._book, per=per)

    def charged(self, days: DayRange, by: Sequence[str], most: int | None = None) -> Iterator[Sum]:
        """Sums of chargebacks."""
        return self._ask(lambda cursor: StoredSums(self._store, cursor).charged(days, by, most))

    def billed(self, days: DayRange, by: Sequence[str]) -> Iterator[Sum]:
        """Sums of billing lines."""
        return self._ask(lambda cursor: StoredSums(self._store, cursor).billed(days, by))

    def existing(self, days: Sequence[date]) -> Mapping[date, Existing]:
        """The inventory of each of these days."""
        (found,) = self._ask(lambda cursor: iter([StoredSums(self._store, cursor).existing(days)]))
        return found

    def check(self) -> None:
        """Go on only if nobody asked the run to end."""
        self._check()

    def _ask(self, ask: Callable[[Cursor], Iterator[_T]]) -> Iterator[_T]:
        self.check()
        try:
            with self._engine.asking(self._question) as cursor:
                yield from ask(cursor)
        except QueryTimeout:
            self.check()
            raise


@contextmanager
def facts_for(job: Job) -> Iterator[StoredFacts]:
    """The facts for the emitters of one run; whatever they ask is interrupted when the run is asked to end."""
    question, ended = Question(), threading.Event()

    def _watch() -> None:
        while not ended.wait(_LOOK_SECONDS):  # again and again: an interrupt between two statements is lost
            if job.stop.is_set() or job.lease.lost.is_set():
                question.cancel()

    engine = QueryEngine()
    watcher = threading.Thread(target=_watch, name="emitters' watcher", daemon=True)
    watcher.start()
    try:
        yield StoredFacts(job.store, engine, question, job.check)
    finally:
        ended.set()
        watcher.join()
        engine.close()
