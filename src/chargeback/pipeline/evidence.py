"""Evidence: bill, usage and members of a day, fetched or stored. Less complete data never replaces more complete data.

Usage is fetched ahead of the calculation by a few threads. If the metrics source is unreachable, it is not queried
again in the same run. The usage from which a day was calculated is stored and reused. If it is fetched again, the more
complete response is kept for each measure of each resource; a smaller one is accepted only on request.

The same applies to bills that are constructed from metrics, for each product type. A measured bill is less complete
than another if it covers less of the day, or as much with a smaller quantity, because metrics have expired or are
temporarily unavailable. The rate is not measured: a changed rate is accepted.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from threading import Event
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.ecosystems.contract import Gatherer, MeasuredUsage
from chargeback.errors import DamagedFacts, SourceError, SourcePartial, SourceUnavailable
from chargeback.logs import log_context
from chargeback.model.billing import BillingLine, bill_of, coverage_of
from chargeback.model.inventory import Inventory
from chargeback.model.money import canonical
from chargeback.store.facts.tables import BILLING_TABLE, ORDER, USAGE_TABLE, FactTables, read_day

log = logging.getLogger(__name__)

#: Two responses of one source may differ in the last digits of a double; this does not count as less.
_NOISE: Final = 1e-9
_BILL_NOISE: Final = 1 - Decimal("1e-9")
_KEYS: Final = ["measure", "resource_id", "subject"]
_FIELDS: Final = tuple(field.name for field in fields(BillingLine) if field.name not in {"day", "resource_type"})

Resolve = Callable[[date, pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class UsageRequest:
    """A day whose usage is needed. ``use_stored``: stored evidence is enough. ``replace``: fetched usage replaces it
    even if it is less."""

    day: date
    use_stored: bool
    replace: bool = False


@dataclass(frozen=True, slots=True)
class DayUsage:
    """The usage of a day, or why there is none.

    Attributes:
        table: the usage of the day after the query, or sufficient stored evidence.
        is_new: it differs from the stored usage.
        is_fetched: the source was queried successfully.
        stored: the stored usage of the day; None if it is lost.
        poorer: the measures for which the source has less than is stored.
        error: why there is no ``table``.
    """

    table: pa.Table | None
    is_new: bool = False
    is_fetched: bool = False
    stored: pa.Table | None = None
    poorer: tuple[str, ...] = ()
    error: SourceError | None = None


class FetchedUsages:
    """An iterator over the usages of days, in order; it fetches some ahead."""

    def __init__(self, fetches: Iterator[Future[DayUsage]], *, ahead: int) -> None:
        self._fetches = fetches
        self._ahead = deque(islice(fetches, ahead))

    def __iter__(self) -> FetchedUsages:
        return self

    def __next__(self) -> DayUsage:
        if not self._ahead:
            raise StopIteration
        usage = self._ahead.popleft().result()
        self._ahead.extend(islice(self._fetches, 1))
        return usage

    def wait(self, seconds: float) -> bool:
        """Wait for the next usage, if there is one; return False if it takes longer than that."""
        return not self._ahead or not wait([self._ahead[0]], seconds).not_done


class UsageFetcher:
    """Prefetches usage, in the order in which the days will be requested. ``resolve`` finds the owners of stored
    usage."""

    table_name = USAGE_TABLE

    def __init__(
        self,
        gatherer: Gatherer,
        inventory: Inventory,
        facts: FactTables,
        *,
        workers: int,
        resolve: Resolve = lambda _, usage: usage,
    ) -> None:
        self._gatherer = gatherer
        self._inventory = inventory
        self._facts = facts
        self._workers = workers
        self._resolve = resolve
        self._unreachable: SourceUnavailable | None = None

    @contextmanager
    def fetching(self, requests: Sequence[UsageRequest]) -> Iterator[FetchedUsages]:
        """Yield the usage of each of these days."""
        abandoned = Event()
        with ThreadPoolExecutor(self._workers, thread_name_prefix="usage") as pool:
            try:
                fetches = (pool.submit(self._day_logged, each, abandoned) for each in requests)
                yield FetchedUsages(fetches, ahead=2 * self._workers)
            finally:
                abandoned.set()

    def _day_logged(self, request: UsageRequest, abandoned: Event) -> DayUsage:
        with log_context(date=request.day):
            return self._day(request, abandoned)

    def _day(self, request: UsageRequest, abandoned: Event) -> DayUsage:
        day, stored = request.day, load_stored(self._facts, self.table_name, request.day)
        if request.use_stored and stored is not None:
            return DayUsage(stored, stored=stored)
        if self._unreachable is not None or abandoned.is_set():
            return DayUsage(None, stored=stored, error=self._unreachable)
        try:
            measured = self._measure(day)
        except SourceError as error:
            # An incomplete response has no information about other days.
            if isinstance(error, SourceUnavailable) and not isinstance(error, SourcePartial):
                self._unreachable = error
            return DayUsage(None, stored=stored, error=error)
        if measured.dropped:
            log.warning(
                "%s: %d samples were dropped because they were NaN, infinite or negative", day, measured.dropped
            )
        before = None if stored is None else self._comparable(stored)
        if before is None or request.replace:
            return DayUsage(measured.table, is_new=True, is_fetched=True, stored=stored)
        table = richer_of(before, measured.table)
        poorer = self._poorer(day, before, table, measured.table)
        return DayUsage(table, table is not before, is_fetched=True, stored=stored, poorer=poorer)

    def _measure(self, day: date) -> MeasuredUsage:
        return self._gatherer.usage(day, self._inventory)

    def _comparable(self, stored: pa.Table) -> pa.Table:
        """Return the part of the stored usage that the source can return."""
        return stored

    def _poorer(self, day: date, stored: pa.Table, merged: pa.Table, fetched: pa.Table) -> tuple[str, ...]:
        """Return the measures for which ``stored`` has more than was fetched."""
        if merged is fetched or stored.num_rows == 0 or stored.equals(fetched):
            return ()
        known, now = (_sums(self._resolve(day, usage)) for usage in (merged, fetched))
        measures = set(self._resolve(day, stored)["measure"].to_pylist())
        return tuple(
            measure
            for measure in sorted(measures & known.keys())
            if measure not in now or abs(known[measure] - now[measure]) > _NOISE * known[measure]
        )


def load_stored(facts: FactTables, name: str, day: date) -> pa.Table | None:
    """Return the stored evidence of a day, or None if there is none or its file is damaged, which is logged."""
    try:
        return read_day(facts, name, day)
    except DamagedFacts as error:
        log.warning("%s: stored evidence is unreadable; fetching it again: %s", day, error.message)
        return None


def richer_of(stored: pa.Table, fetched: pa.Table) -> pa.Table:
    """Return for each measure of each resource the fetched usage if it is at least as complete as the stored one, else
    the stored one; return ``stored`` itself if nothing changes."""
    if stored.num_rows == 0:
        return fetched if fetched.num_rows else stored
    gained = _groups_with_less(fetched, stored) - _groups_with_less(stored, fetched)
    if not gained:
        return stored
    parts = pa.concat_tables([_filter_groups(stored, gained, invert=True), _filter_groups(fetched, gained)])
    return parts.sort_by([(name, "ascending") for name in ORDER[USAGE_TABLE]])


def _groups_with_less(table: pa.Table, other: pa.Table) -> set[str]:
    """Return the groups of ``table`` that ``other`` has less of: a subject is missing, or has a smaller value."""
    values = other.select([*_KEYS, "value"]).rename_columns([*_KEYS, "other"])
    joined = table.select([*_KEYS, "value"]).join(values, _KEYS, join_type="left outer")
    enough = pc.multiply(pc.cast(joined["value"], pa.float64()), 1 - _NOISE)
    less = pc.fill_null(pc.less(pc.cast(joined["other"], pa.float64()), enough), True)
    return set(_groups(joined.filter(less)).to_pylist())


def _groups(usage: pa.Table) -> pa.ChunkedArray:
    """Return measure and resource of each row as one string."""
    return pc.binary_join_element_wise(usage["measure"], usage["resource_id"], "\x1f")


def _filter_groups(usage: pa.Table, groups: set[str], *, invert: bool = False) -> pa.Table:
    among = pc.is_in(_groups(usage), value_set=pa.array(sorted(groups), pa.string()))
    return usage.filter(pc.invert(among) if invert else among)


def _sums(usage: pa.Table) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for measure, value in zip(usage["measure"].to_pylist(), usage["value"].to_pylist(), strict=True):
        sums[measure] += float(value)
    return dict(sums)


@dataclass(frozen=True, slots=True)
class Remeasured:
    """A bill that is at least as complete as the stored one, and descriptions of the product types for which the new
    measurement has less."""

    lines: Sequence[BillingLine]
    poorer: Sequence[str] = ()


def richer_bill(facts: FactTables, day: date, measured: Sequence[BillingLine]) -> Remeasured:
    """Return the measured lines, with less complete ones replaced by the stored lines. Those of additional bills were
    not measured, and remain."""
    own = [line for line in measured if bill_of(line) is None]
    stored, new = _by_type(line for line in stored_bill(facts, day) if bill_of(line) is None), _by_type(own)
    kept = {name for name in stored.keys() & new.keys() if _is_less(new[name], stored[name])}
    if not kept:
        return Remeasured(measured)
    lines = [line for line in measured if line.product_type not in kept or bill_of(line) is not None]
    lines += [line for name in sorted(kept) for line in stored[name]]
    poorer = [f"{name}: {_spell(new[name])} instead of {_spell(stored[name])}" for name in sorted(kept)]
    return Remeasured(lines, poorer)


def unmeasured_part(lines: Iterable[BillingLine]) -> str | None:
    """Describe the parts of a bill that were measured over a part of the day only, or return None."""
    partial = sorted({f"{line.product_type}: {line.description}" for line in lines if coverage_of(line) < 1})
    return "; ".join(partial) or None


def stored_bill(facts: FactTables, day: date) -> list[BillingLine]:
    """Return the stored lines of a day; none if their file is damaged."""
    try:
        rows = read_day(facts, BILLING_TABLE, day).to_pylist()
    except DamagedFacts:
        return []
    return [BillingLine(day=day, **{name: row[name] for name in _FIELDS}) for row in rows]


def _by_type(lines: Iterable[BillingLine]) -> dict[str, list[BillingLine]]:
    by_type: defaultdict[str, list[BillingLine]] = defaultdict(list)
    for line in lines:
        by_type[line.product_type].append(line)
    return dict(by_type)


def _is_less(new: Sequence[BillingLine], stored: Sequence[BillingLine]) -> bool:
    seen, seen_before = (_seen(lines) for lines in (new, stored))
    if seen != seen_before:
        return seen < seen_before
    return _quantity(new) < _quantity(stored) * _BILL_NOISE


def _seen(lines: Iterable[BillingLine]) -> Fraction:
    return min(map(coverage_of, lines))


def _quantity(lines: Iterable[BillingLine]) -> Decimal:
    return sum((line.quantity or Decimal(0) for line in lines), Decimal(0))


def _spell(lines: Sequence[BillingLine]) -> str:
    text = f"{canonical(_quantity(lines))} {lines[0].unit or ''}".rstrip()
    return f"{text} ({lines[0].description})" if _seen(lines) < 1 else text
