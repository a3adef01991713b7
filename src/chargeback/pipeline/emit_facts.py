"""A tenant's facts and inventory for its emitters, within their lookback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any, Final, TypeVar

import pyarrow as pa

from chargeback.emitters.contract import DAILY, MONTHLY, OTHER, WEEKLY, Existing, FocusKind, Period, Sum
from chargeback.errors import QueryTimeout
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import DayRange
from chargeback.pipeline.run_context import RunContext
from chargeback.reports.focus.columns import FocusLayout
from chargeback.reports.focus.file import FocusSource, focus_file, in_the_books
from chargeback.reports.focus.lookups import FocusTenant
from chargeback.reports.focus.metadata import focus_metadata
from chargeback.store.control.emissions import existing_on
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.queries.daily_totals import daily_totals, is_finer_than, stored_rows
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.posted import open_posted
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagCache
from chargeback.store.tenant import TenantStore

_T = TypeVar("_T")

#: The unit of time by which rows are summed, by aggregation; hourly rows are the finest.
_UNITS: Final = {DAILY: "day", WEEKLY: "week", MONTHLY: "month"}
_LOOK_SECONDS = 0.1


def sums_of(batches: Iterator[pa.RecordBatch], by: Sequence[str]) -> Iterator[Sum]:
    """Yield the rows of :func:`chargeback.store.queries.daily_totals.daily_totals`, one by one."""
    for batch in batches:
        days, amounts = batch.column("date").to_pylist(), batch.column("amount").to_pylist()
        values = zip(*(batch.column(name).to_pylist() for name in by), strict=True) if by else [()] * len(days)
        for day, of_row, amount in zip(days, values, amounts, strict=True):
            yield Sum(day, tuple(of_row), amount)


class StoredSums:
    """Sums and inventory of one tenant, through one reader, for a scrape."""

    def __init__(self, store: TenantStore, reader: TenantReader) -> None:
        self._store = store
        self._reader = reader

    def charged(self, days: DayRange, by: Sequence[str], most: int | None = None) -> Iterator[Sum]:
        """Sums of chargebacks, see :class:`chargeback.emitters.contract.Facts`."""
        limit = None if most is None else (most, OTHER)
        return sums_of(daily_totals(self._reader, CHARGEBACKS, days, by, limit), by)

    def billed(self, days: DayRange, by: Sequence[str]) -> Iterator[Sum]:
        """Sums of billing lines."""
        return sums_of(daily_totals(self._reader, BILLING_LINES, days, by), by)

    def existing(self, days: Sequence[date]) -> Mapping[date, Existing]:
        """The inventory of each of these days; with a scope, what occurs in its rows."""
        seen = self._reader.visible_entities()
        with self._store.control.read() as connection:
            resources = existing_on(connection, RESOURCES, days, None if seen is None else seen.resources)
            identities = existing_on(connection, IDENTITIES, days, None if seen is None else seen.identities)
        return {day: Existing(resources[day], identities[day]) for day in days}


class StoredFacts:
    """The facts of one tenant, for its emitters; see :class:`chargeback.emitters.contract.Facts`.

    ``check`` raises when the run must end; running queries are then cancelled through ``token``. ``days`` are those
    that the current emitter may read. Tags are those at the start of the stage. ``bill`` has the settings of the bill
    in FOCUS.
    """

    def __init__(
        self,
        store: TenantStore,
        engine: QueryEngine,
        token: CancellationToken,
        check: Callable[[], None],
        bill: FocusTenant,
    ) -> None:
        self._store = store
        self._engine = engine
        self._token = token
        self._check = check
        self._bill = bill
        self._lookups = LookupCaches()
        self.days: Sequence[date] = ()
        with store.control.read() as connection:
            self._tags = TagCache().load(store.tenant_name, connection)

    def rows(self, period: Period) -> Iterator[pa.RecordBatch]:
        """Return the rows of a period as stored."""
        return self._query(lambda reader: stored_rows(reader, CHARGEBACKS, period.days))

    def csv(self, period: Period) -> Iterator[memoryview]:
        """Return the rows of a period as CSV."""
        return self._query(lambda reader: self._csv(reader, period))

    def _csv(self, reader: TenantReader, period: Period) -> Iterator[memoryview]:
        unit = _UNITS.get(period.aggregation)
        per = unit if unit and is_finer_than(reader, CHARGEBACKS, period.days, unit) else None
        return reader.export(CHARGEBACKS, Selection.of_days(period.days), per=per)

    def focus(self, period: Period, kind: FocusKind) -> Iterator[memoryview]:
        """Return the bill of a period in FOCUS, as a file."""
        return self._of_bill(period, kind, lambda source: focus_file(source, _layout(kind), period.days, kind.form))

    def focus_metadata(self, period: Period, kind: FocusKind) -> Mapping[str, Any]:
        """Return the metadata of that file."""
        (found,) = self._of_bill(
            period, kind, lambda source: iter([focus_metadata(source, _layout(kind), period.days)])
        )
        return found.model_dump(mode="json", by_alias=True)

    def charged(self, days: DayRange, by: Sequence[str], most: int | None = None) -> Iterator[Sum]:
        """Sums of chargebacks."""
        return self._query(lambda reader: StoredSums(self._store, reader).charged(days, by, most))

    def billed(self, days: DayRange, by: Sequence[str]) -> Iterator[Sum]:
        """Sums of billing lines."""
        return self._query(lambda reader: StoredSums(self._store, reader).billed(days, by))

    def existing(self, days: Sequence[date]) -> Mapping[date, Existing]:
        """The inventory of each of these days."""
        (found,) = self._query(lambda reader: iter([StoredSums(self._store, reader).existing(days)]))
        return found

    def check(self) -> None:
        """Raise if the run was asked to stop."""
        self._check()

    def _query(self, query: Callable[[TenantReader], Iterator[_T]]) -> Iterator[_T]:
        with self._until_stopped(), self._engine.cursor(self._token) as cursor:
            yield from query(TenantReader(cursor, self._store.facts, self._tags))

    def _of_bill(self, period: Period, kind: FocusKind, query: Callable[[FocusSource], Iterator[_T]]) -> Iterator[_T]:
        with self._until_stopped(), open_reader(self._engine, self._store, self._token, self._lookups) as reader:
            source = FocusSource(reader, self._store.control, self._bill)
            if kind.is_posted:
                posted = open_posted(reader, self._store, self._token, self._lookups, None)
                source = in_the_books(source, posted, AccountingPeriod.of(period.start))
            yield from query(source)

    @contextmanager
    def _until_stopped(self) -> Iterator[None]:
        self.check()
        try:
            yield
        except QueryTimeout:
            self.check()
            raise


def _layout(kind: FocusKind) -> FocusLayout:
    return FocusLayout(kind.version, kind.split)


@contextmanager
def facts_for(run: RunContext) -> Iterator[StoredFacts]:
    """Open the facts for the emitters of one run; their queries are cancelled when the run is asked to stop."""
    token, ended = CancellationToken(), threading.Event()

    def _watch() -> None:
        while not ended.wait(_LOOK_SECONDS):  # repeatedly: an interrupt between two statements is lost
            if run.stop.is_set() or run.lease.lost.is_set():
                token.cancel()

    engine = QueryEngine()
    watcher = threading.Thread(target=_watch, name="emitters' watcher", daemon=True)
    watcher.start()
    try:
        yield StoredFacts(run.store, engine, token, run.check, FocusTenant.of(run.tenant))
    finally:
        ended.set()
        watcher.join()
        engine.close()
