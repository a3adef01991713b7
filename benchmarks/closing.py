"""Closing a month, and posted amounts compared with charges."""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from benchmarks.measure import Figure, milliseconds
from benchmarks.shapes import FIRST_DAY
from benchmarks.tenants import Generated, opened
from chargeback.config.closing import ClosingProfile
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import DayRange, start_of_day, utc_now
from chargeback.reports.closing.close import ClosingOrder, close
from chargeback.reports.closing.sealing import STATEMENT
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.catalogue import NewContent, NewFile, every_file, instant_of_change, replace_days
from chargeback.store.control.closings import read_receipts
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.posted import PostedReader, open_posted
from chargeback.store.queries.reader import open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.tenant import TenantStore

_UTC: Final = ZoneInfo("UTC")
#: The first whole month of the tenants.
_FIRST: Final = AccountingPeriod.of(FIRST_DAY).next
_BY: Final = ("identity_id", "product_type")
_MIB: Final = 2**10


def months(tenant: Generated, scratch: Path, *, repeats: int) -> Iterator[Figure]:
    """Close two months by identity, replace some of their days, and measure posted sums of the third month; the
    reference is the same sums as charged.

    Raises:
        RuntimeError: a month could not be closed.
    """
    name = f"closing, {tenant.shape.name}"
    facts = _linked(tenant.facts, scratch / f"closing-{tenant.shape.name}")
    database = scratch / f"closing-{tenant.shape.name}.db"
    with closing(opened(tenant, database, facts)) as store:
        _close_apart(tenant, database, facts, _FIRST)
        seconds, peak, values = _close_apart(tenant, database, facts, _FIRST.next)
        yield Figure(name, "close a month, by identity", seconds, "s", note=f"{values:,} statements")
        yield Figure(name, "peak memory", peak, "MiB")
        replaced = _replace(store)
        third = _FIRST.next.next
        selection, caches = Selection(third.window), LookupCaches()
        with QueryEngine() as engine:

            def _ask(by: str, known: LookupCaches | None, *, posted: bool) -> Aggregate:
                token, its = CancellationToken(), known or LookupCaches()
                with open_reader(engine, store, token, its) as reader:
                    asked = open_posted(reader, store, token, its, None) if posted else reader
                    return asked.aggregate(CHARGEBACKS, selection, Grouping((by,), "month", _UTC))

            for by in _BY:
                for asked, known in (("", caches), (", first asked", None)):
                    plain = milliseconds(partial(_ask, by, known, posted=False), repeats=repeats)
                    taken = milliseconds(partial(_ask, by, known, posted=True), repeats=repeats)
                    note = f"corrections of {replaced} days; the reference is what was charged"
                    yield Figure(name, f"posted by {by}, a month{asked}", taken, "ms", reference=plain, note=note)


def whole_month(tenant: Generated, scratch: Path) -> Iterator[Figure]:
    """Close the only whole month of a tenant, by identity.

    Raises:
        RuntimeError: it could not be closed.
    """
    name = f"closing, {tenant.shape.name}"
    facts = _linked(tenant.facts, scratch / f"closing-{tenant.shape.name}")
    database = scratch / f"closing-{tenant.shape.name}.db"
    with closing(opened(tenant, database, facts)) as store:
        rows = sum(file.rows for file in store.facts.snapshot(CHARGEBACKS_TABLE).within(_FIRST.days))
    seconds, peak, values = _close_apart(tenant, database, facts, _FIRST)
    note = f"{rows:,} rows, {values:,} statements"
    yield Figure(name, "close a month, by identity", seconds, "s", note=note)
    yield Figure(name, "peak memory", peak, "MiB")


def _linked(facts: Path, folder: Path) -> Path:
    """Return a folder with links to the tables of another one; its documents are its own."""
    folder.mkdir()
    for each in facts.iterdir():
        (folder / each.name).symlink_to(each)
    return folder


def _replace(store: TenantStore) -> int:
    """Restore the former contents of the recalculated days of closed months; return the number of days."""
    with store.control.read() as connection:
        named = [each for each in every_file(connection, kept_only=True) if each.table == CHARGEBACKS_TABLE]
    closed = DayRange(_FIRST.start, _FIRST.next.days.end)
    present = {each.day: each for each in named if each.until is None}
    contents = [
        NewContent(each.table, each.day, NewFile(each.path, each.rows, each.size, each.schema_version))
        for each in named
        if each.until is not None
        and each.day is not None
        and each.day in closed
        and each.path != present[each.day].path
    ]
    with store.control.write(durable=True) as connection:
        replace_days(connection, contents, instant_of_change(connection, utc_now()))
    store.facts.changed()
    return len(contents)


def _close_apart(tenant: Generated, database: Path, facts: Path, period: AccountingPeriod) -> tuple[float, float, int]:
    """Close a month in a separate process; return the seconds, the peak memory, and the number of statements."""
    mine, its = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_close, args=(tenant, database, facts, period, its))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{period.id} of {tenant.shape.name} could not be closed")
    found: tuple[float, float, int] = mine.recv()
    return found


def _close(tenant: Generated, database: Path, facts: Path, period: AccountingPeriod, told: Connection) -> None:
    with closing(opened(tenant, database, facts, copied=True)) as store, QueryEngine() as engine:
        token, caches = CancellationToken(), LookupCaches()

        @contextmanager
        def _posted() -> Iterator[PostedReader]:
            with open_reader(engine, store, token, caches) as reader:
                yield open_posted(reader, store, token, caches, None)

        profile = ClosingProfile(by=("identity_id",))
        view = TenantView(store.tenant_name, store.tenant_id, store.ecosystem, 200, store, closing=profile)
        kinds = ("day-missing", "day-pending", "day-differs", "settling")
        order = ClosingOrder(period, "benchmarks", accept=kinds, reason="A benchmark")
        later = start_of_day(tenant.shape.last_day) + timedelta(days=60)
        start = time.perf_counter()
        close(view, _posted, partial(store.control.write, durable=True), order, lambda: later)
        seconds = time.perf_counter() - start
        with store.control.read() as connection:
            named = json.loads(read_receipts(connection)[-1])["documents"]
        values = sum(each["kind"] == STATEMENT for each in named)
    told.send((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB, values))
