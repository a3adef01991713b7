"""Evidence: usage and members of a day, fetched or kept.

Usage is fetched ahead of the calculation by a few threads. When the metrics source turns out to be unreachable it is
not asked again in the same run. What a day was once calculated from is kept and used again; only a request to
recalculate fetches anew, and a poorer answer never replaces a stored one without being logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.members import Membership
from chargeback.ecosystems.contract import Gatherer
from chargeback.errors import DamagedFacts, SourceError, SourceUnavailable
from chargeback.logs import log_context
from chargeback.model.inventory import Inventory
from chargeback.store.facts.tables import MEMBERS_TABLE, USAGE_TABLE, FactTables, read_day

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DayUsage:
    """The usage of a day, or why there is none. ``is_new`` tells that it is not stored yet."""

    table: pa.Table | None
    is_new: bool
    error: SourceError | None = None


class UsageFetcher:
    """Fetches usage ahead, in the order in which the days will be asked for."""

    def __init__(self, gatherer: Gatherer, inventory: Inventory, facts: FactTables, *, workers: int) -> None:
        self._gatherer = gatherer
        self._inventory = inventory
        self._facts = facts
        self._workers = workers
        self._unreachable: SourceUnavailable | None = None

    @contextmanager
    def fetching(self, days: Sequence[tuple[date, bool]]) -> Iterator[Iterator[DayUsage]]:
        """The usage of each of ``days``, given as (day, whether stored evidence is used)."""
        abandoned = Event()
        with ThreadPoolExecutor(self._workers, thread_name_prefix="usage") as pool:
            try:
                yield self._in_order(pool, days, abandoned)
            finally:
                abandoned.set()

    def _in_order(
        self, pool: ThreadPoolExecutor, days: Sequence[tuple[date, bool]], abandoned: Event
    ) -> Iterator[DayUsage]:
        ahead: list[Future[DayUsage]] = []
        position = 0
        for _ in days:
            while position < len(days) and len(ahead) < 2 * self._workers:
                ahead.append(pool.submit(self._day_logged, *days[position], abandoned))
                position += 1
            yield ahead.pop(0).result()

    def _day_logged(self, day: date, use_stored: bool, abandoned: Event) -> DayUsage:
        with log_context(date=day):
            return self._day(day, use_stored, abandoned)

    def _day(self, day: date, use_stored: bool, abandoned: Event) -> DayUsage:
        stored = kept(self._facts, USAGE_TABLE, day)
        if use_stored and stored is not None:
            return DayUsage(stored, is_new=False)
        if self._unreachable is not None or abandoned.is_set():
            return DayUsage(None, is_new=False, error=self._unreachable)
        try:
            measured = self._gatherer.usage(day, self._inventory)
        except SourceError as error:
            if isinstance(error, SourceUnavailable):
                self._unreachable = error
            return DayUsage(None, is_new=False, error=error)
        if measured.dropped:
            log.warning("%s: %d samples were NaN, infinite or negative and do not count", day, measured.dropped)
        table = measured.table if stored is None else without_loss(day, stored, measured.table)
        return DayUsage(table, is_new=True)


def kept(facts: FactTables, name: str, day: date) -> pa.Table | None:
    """The stored evidence of a day; none, which is logged, where its file is lost and it must be had anew."""
    try:
        return read_day(facts, name, day)
    except DamagedFacts as error:
        log.warning("%s: evidence is lost and had anew: %s", day, error.message)
        return None


def without_loss(day: date, stored: pa.Table, fetched: pa.Table) -> pa.Table:
    """What was fetched, and of the measures that are not answered for any more what was stored.

    Logs every measure of which less is known now than before.
    """
    kept = [fetched]
    for measure in sorted(set(stored["measure"].to_pylist())):
        before, now = _of_measure(stored, measure), _of_measure(fetched, measure)
        if now.num_rows == 0:
            log.warning("%s: the metrics source has no %s any more; the stored measurements are kept", day, measure)
            kept.append(before)
        elif now.num_rows < before.num_rows or pc.sum(now["value"]).as_py() < pc.sum(before["value"]).as_py():
            log.warning(
                "%s: %s is measured anew with less than before: %d series adding up to %s, formerly %d with %s",
                *(day, measure, now.num_rows, pc.sum(now["value"]).as_py()),
                *(before.num_rows, pc.sum(before["value"]).as_py()),
            )
    return pa.concat_tables(kept)


def _of_measure(usage: pa.Table, measure: str) -> pa.Table:
    return usage.filter(pc.equal(usage["measure"], measure))


def members_of(
    facts: FactTables, membership: Membership, day: date, usage: pa.Table, billing: pa.Table, *, use_stored: bool
) -> tuple[pa.Table, bool]:
    """Who belonged to what on a day: as stored, else as the inventory tells; and whether that is not stored yet."""
    stored = kept(facts, MEMBERS_TABLE, day) if use_stored else None
    if stored is not None:
        return stored, False
    return membership.on(day, usage, set(billing["resource_id"].to_pylist())), True
