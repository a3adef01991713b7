"""Partial aggregates: their cost and benefit, compared with the same sums in a table.

All figures are CPU time of this process, including the query engine: they compare work, not waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq

from benchmarks.measure import Figure
from benchmarks.reference.daily_sums import DailySums, days_of
from benchmarks.tenants import Generated
from chargeback.model.days import ONE_DAY, instants
from chargeback.store.control import tags
from chargeback.store.control.database import ControlDatabase
from chargeback.store.facts.partial_files import PARTIALS, PartialFiles, by_week
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.costs import CostQuery, Costs, costs
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, Cursor, QueryEngine
from chargeback.store.queries.partials import kind_of, make_partials
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagCache, TagIndex

_UTC: Final = ZoneInfo("UTC")
_REPEATS: Final = 5
#: From this number of rows on, a figure is measured once and without comparing it with a table.
_MANY_ROWS: Final = 5 * 10**7
#: The number of rows in the period of the costs, if the tenant has twice as many.
_PERIOD_ROWS: Final = 850_000
_BY: Final = ("identity_id", "product_type", "environment_id", "resource_id", "tag:team")
_QUERIES: Final = (
    *(("product_type", "day"), ("resource_id", "month"), ("environment_id", "day")),
    *(("identity_id", "day"), ("identity_id", "month"), ("tag:team", "day")),
)


def sums(tenant: Generated, scratch: Path) -> Iterator[Figure]:
    """Make partial aggregates, query with and without them, store them as a table, and query it."""
    facts, root = tenant.tables(), scratch / f"sums-{tenant.shape.name}"
    partials = PartialFiles(root)
    with QueryEngine(threads=2) as engine, engine.cursor(CancellationToken()) as cursor:
        yield _made(cursor, partials, facts, tenant, root)
        index = _tags(tenant)
        for column, unit in _QUERIES:
            yield _asked(engine, partials, facts, tenant, index, column, unit)
        yield _costs(engine, partials, tenant, index, scratch / "no-sums")
        if tenant.rows < _MANY_ROWS:
            yield from _as_a_table(cursor, partials, facts, tenant, root)


def _made(cursor: Cursor, partials: PartialFiles, facts: FactTables, tenant: Generated, root: Path) -> Figure:
    files = facts.snapshot(CHARGEBACKS_TABLE).files
    start = time.process_time()
    for of_week in by_week(files).values():
        make_partials(cursor, partials, CHARGEBACKS, of_week)
    taken = (time.process_time() - start) * 1000
    size = sum(path.stat().st_size for path in (root / PARTIALS).rglob("*.parquet"))
    note = f"{size / sum(file.size for file in files):.0%} of the size of the rows"
    return Figure(f"sums, {tenant.shape.name}", "make those of a day", taken / tenant.shape.days, "ms", note=note)


def _tags(tenant: Generated) -> TagIndex:
    database = ControlDatabase(f"sqlite:///{tenant.database}")
    with database, database.read() as connection:
        assert tags.revision(connection)
        return TagCache().load(tenant.shape.name, connection)


def _asked(
    engine: QueryEngine,
    partials: PartialFiles,
    facts: FactTables,
    tenant: Generated,
    index: TagIndex,
    column: str,
    unit: str,
) -> Figure:
    """Measure an aggregate over everything, with the partial aggregates and from the rows."""
    selection = Selection(instants(tenant.shape.dates()[0], tenant.shape.last_day))
    snapshot = facts.snapshot(CHARGEBACKS_TABLE)

    def _ask(source: PartialFiles | None) -> Aggregate:
        with engine.cursor(CancellationToken()) as cursor:
            reader = TenantReader(cursor, facts, _tags_for(index, source), {CHARGEBACKS_TABLE: snapshot})
            reader.plan.partials = source
            return reader.aggregate(CHARGEBACKS, selection, Grouping((column,), unit, _UTC))

    if _ask(partials) != _ask(None):
        raise RuntimeError(f"the sums by {column} and {unit} are not those of the rows")
    taken, scanned = _cpu(lambda: _ask(partials), tenant), _cpu(lambda: _ask(None), tenant)
    name = f"by {column} and {unit}, all"
    return Figure(
        f"sums, {tenant.shape.name}", name, taken, "ms", reference=scanned, note="the reference reads the rows"
    )


def _tags_for(index: TagIndex, partials: PartialFiles | None) -> TagIndex:
    """Return the tags of a question; of one that reads the rows, without the sums that are kept beside the tags."""
    return index if partials is not None else TagIndex(index.identities, index.resources)


def _costs(engine: QueryEngine, partials: PartialFiles, tenant: Generated, index: TagIndex, unwritable: Path) -> Figure:
    """Measure the first request of the page: costs by five columns, of a period and the one before."""
    days = max(1, min(tenant.shape.days // 2, round(_PERIOD_ROWS * tenant.shape.days / tenant.rows)))
    last = tenant.shape.last_day
    now, before = (
        instants(last - (days - 1) * ONE_DAY, last),
        instants(last - (2 * days - 1) * ONE_DAY, last - days * ONE_DAY),
    )
    query = CostQuery(Selection(now), before, _BY, "tag:team", 7, "day", _UTC)
    unwritable.write_text("no folder can be here")

    def _ask(source: PartialFiles) -> Costs:
        facts = tenant.tables()
        facts.partials = source
        tags = _tags_for(index, source if source is partials else None)
        with engine.cursor(CancellationToken()) as cursor:
            return costs(TenantReader(cursor, facts, tags), query)

    rows = PartialFiles(unwritable)
    if _ask(partials) != _ask(rows):
        raise RuntimeError("the costs are not those of the rows")
    note = f"{tenant.rows // tenant.shape.days * days:,} rows in each of two periods of {days} days"
    name = "costs by five columns, compared"
    taken, scanned = _cpu(lambda: _ask(partials), tenant), _cpu(lambda: _ask(rows), tenant)
    return Figure(f"sums, {tenant.shape.name}", name, taken, "ms", reference=scanned, note=note)


def _as_a_table(
    cursor: Cursor, partials: PartialFiles, facts: FactTables, tenant: Generated, root: Path
) -> Iterator[Figure]:
    """Commit the same sums day by day to a table, and measure one query of both, without building a response."""
    group = f"sums as a table, {tenant.shape.name}"
    weeks = by_week(facts.snapshot(CHARGEBACKS_TABLE).files)
    committing = 0.0
    for columns in CHARGEBACKS.partials:
        table = DailySums(root / "-".join(columns))
        files = [kept[0] for kept in partials.by_week(CHARGEBACKS_TABLE, kind_of(CHARGEBACKS, columns), weeks).values()]
        for file in files:
            for rows in days_of(file, pq.read_table(file.path, partitioning=None)):
                start = time.process_time()
                table.add(rows)
                committing += time.process_time() - start
        of_table = _cpu(partial(_run, cursor, columns[0], table.files), tenant)
        paths = [file.path for file in files]
        of_partials = _cpu(partial(_run, cursor, columns[0], paths.copy), tenant)
        note = f"{of_partials:.0f} ms from partial aggregates"
        yield Figure(group, f"sum by {columns[0]} and day, all, of {len(columns)} columns", of_table, "ms", note=note)
    yield Figure(group, "commit those of a day", committing * 1000 / tenant.shape.days, "ms")


def _cpu(work: Callable[[], object], tenant: Generated) -> float:
    """Return the lowest CPU time of several runs in ms, after a warm-up run; of a very large tenant, of one run."""
    many = tenant.rows >= _MANY_ROWS
    if not many:
        work()
    taken = []
    for _ in range(1 if many else _REPEATS):
        start = time.process_time()
        work()
        taken.append((time.process_time() - start) * 1000)
    return min(taken)


def _run(cursor: Cursor, column: str, files: Callable[[], list[str]]) -> None:
    """Sum by a column and day."""
    source = "read_parquet($files, hive_partitioning = true)"
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE summed AS
            SELECT date, {column}, sum(total), sum(used), sum(row_count) FROM {source} GROUP BY ALL""",
        {"files": files()},
    )
