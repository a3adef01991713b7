"""What a period cost: by several columns at once, over time, and beside another period.

A row's dimension decides everything that it can be filtered and grouped by, but its environment. So each period is
summed by dimension first, which is a scan of numbers; texts, tags and filters then concern some thousand sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from chargeback.errors import StorageError
from chargeback.model.chargeback import ALLOCATION_ISSUES, DIMENSION_COLUMNS, USAGE_COST
from chargeback.model.days import InstantRange
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import total
from chargeback.store.facts.tables import DIMENSIONS_TABLE
from chargeback.store.queries.aggregate import dimension_columns
from chargeback.store.queries.calendar import bucket
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE, Scan
from chargeback.store.queries.selection import Selection

#: What costs can be grouped and filtered by, beside ``tag:<key>``: what a dimension and its environment decide.
COST_COLUMNS: Final = CHARGEBACKS.groups

_ZERO: Final = Decimal("0.000000000000")
_USAGE: Final = f"cost_type = '{USAGE_COST}'"
_UNALLOCATED: Final = f"identity_id = '{UNALLOCATED}'"


@dataclass(frozen=True)
class CostQuery:
    """Which costs are asked for, and how they are summed.

    Attributes:
        selection: the rows of the period.
        previous: the period that it is compared with, if any.
        by: columns, or ``tag:<key>``, each of which makes a breakdown.
        series: which of ``by`` is broken down over time.
        top: how many values a breakdown names.
        unit: day, week or month.
        zone: in whose calendar these begin.
    """

    selection: Selection
    previous: InstantRange | None
    by: tuple[str, ...]
    series: str
    top: int
    unit: str
    zone: ZoneInfo


@dataclass(frozen=True)
class Totals:
    """The sums of everything selected; those of the other period are zero where there is none."""

    amount: Decimal = _ZERO
    usage: Decimal = _ZERO
    rows: int = 0
    unallocated: Decimal = _ZERO
    previous: Decimal = _ZERO
    previous_unallocated: Decimal = _ZERO


@dataclass(frozen=True)
class Item:
    """The sums of one value of a column."""

    value: str | None
    amount: Decimal
    previous: Decimal
    usage: Decimal
    rows: int


@dataclass(frozen=True)
class Breakdown:
    """The sums by one column: of the values with the largest amounts, of the ``others`` together (``other`` has how
    many, their amount and their previous one), and of those that changed most."""

    by: str
    items: tuple[Item, ...]
    other: tuple[int, Decimal, Decimal] | None
    movers: tuple[Item, ...]


@dataclass(frozen=True)
class Issue:
    """What was not allocated as intended for one reason, to nobody (``unallocated``) or by the next method."""

    reason: str
    unallocated: bool
    amount: Decimal
    rows: int
    resources: int


@dataclass(frozen=True)
class Costs:
    """The answer to a :class:`CostQuery`.

    ``series`` has, by time bucket, the amounts of the items of the series (in their order) and, last, of the others;
    ``previous`` the amounts of the other period by its own days, those of days with rows, whether selected or not.
    """

    totals: Totals
    breakdowns: tuple[Breakdown, ...]
    issues: tuple[Issue, ...]
    series: Mapping[str, Sequence[Decimal]]
    previous: Mapping[date, Decimal]


def costs(reader: TenantReader, query: CostQuery) -> Costs:
    """Return what the selected rows cost.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    cursor = reader.cursor
    windows = [query.selection.window, *([] if query.previous is None else [query.previous])]
    scans = sum_selected(reader, query.selection, windows, query.by)
    breakdowns = tuple(break_down(cursor, number, name, query.top) for number, name in enumerate(query.by))
    slots = len(breakdowns[query.by.index(query.series)].items) + 1
    _assign_slots(cursor, query.by.index(query.series), query.top)
    return Costs(
        totals=_totals(cursor),
        breakdowns=breakdowns,
        issues=_issues(cursor),
        series=_series(cursor, scans[0], query, slots),
        previous=_previous(cursor, scans[1], query.zone) if len(scans) > 1 else {},
    )


def days_with_rows(reader: TenantReader, window: InstantRange) -> int:
    """Return how many UTC days have chargebacks inside ``window``."""
    scan = reader.scan(CHARGEBACKS, Selection(window))
    days = {file.day for file in scan.files}
    partial = scan.only(scan.partial_days)
    if not partial.files:
        return len(days)
    condition = partial.condition()
    sql = f"SELECT DISTINCT date FROM {SOURCE} WHERE {condition.sql}"
    found = {day for (day,) in reader.cursor.rows(sql, condition.parameters)}
    return len(days - scan.partial_days | found)


def daily_amounts(reader: TenantReader, dataset: Dataset, selection: Selection) -> dict[date, Decimal]:
    """Return the amount of the selected rows of each UTC day that has any."""
    if not reader.scan(dataset, selection).files:
        return {}

    def _sum(source: Addends) -> dict[date, Decimal]:
        sql = f"SELECT date, {source.sums['total']} FROM {source.relation} WHERE {source.condition.sql} GROUP BY date"
        return dict(reader.cursor.rows(sql, source.condition.parameters))

    return reader.add_up(dataset, selection, "date", _sum)


def sum_selected(
    reader: TenantReader, selection: Selection, windows: Sequence[InstantRange], by: Sequence[str]
) -> list[Scan]:
    """Make the table ``selected``: the sums of the selected rows of each window (``period`` 0, 1, …) by dimension and
    environment (``total``, ``row_count``), with the columns of the dimension, and with what is grouped by as ``d0``,
    ``d1``, … Returns the scans of the windows.

    Raises:
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    unknown = [each.column for each in selection.columns if each.column not in COST_COLUMNS]
    if unknown:
        raise ValueError(f"costs cannot be filtered by {', '.join(unknown)}")
    scans = [reader.scan(CHARGEBACKS, Selection(window)) for window in windows]
    columns = "dimension_id BIGINT, environment_id VARCHAR, total DECIMAL(38, 12), row_count BIGINT"
    sum_by_period(reader.cursor, "sums", columns, "dimension_id, environment_id, sum(amount), count(*)", scans)
    _resolve(reader, selection, by)
    return scans


def sum_by_period(cursor: Cursor, table: str, columns: str, select: str, scans: Sequence[Scan]) -> None:
    """Make the table ``table`` of what ``select`` sums of each scan's rows, by its other expressions; ``columns`` are
    their names and types. The column ``period`` before them has the number of the scan, from 0."""
    cursor.run(f"CREATE OR REPLACE TEMP TABLE {table} (period INTEGER, {columns})")
    for period, scan in enumerate(scans):
        if not scan.files:
            continue
        condition = scan.condition()
        cursor.run(
            f"INSERT INTO {table} SELECT {period}, {select} FROM {SOURCE} WHERE {condition.sql} GROUP BY ALL",
            condition.parameters,
        )


def _resolve(reader: TenantReader, selection: Selection, by: Sequence[str]) -> None:
    """Make the table ``selected`` of the table ``sums`` and the register of dimensions."""
    cursor = reader.cursor
    files = [file.path for file in reader.snapshot(DIMENSIONS_TABLE).files if file.rows]
    columns = ", ".join(DIMENSION_COLUMNS)
    if files:
        cursor.run(
            f"""CREATE OR REPLACE TEMP TABLE known AS SELECT DISTINCT dimension_id, {columns} FROM read_parquet($files)
                WHERE dimension_id IN (SELECT dimension_id FROM sums)""",
            {"files": files},
        )
    else:
        texts = ", ".join(f"{name} VARCHAR" for name in DIMENSION_COLUMNS)
        cursor.run(f"CREATE OR REPLACE TEMP TABLE known (dimension_id BIGINT, {texts})")
    ((unknown,),) = cursor.rows("SELECT count(*) FROM sums WHERE dimension_id NOT IN (SELECT dimension_id FROM known)")
    if unknown:
        raise StorageError(f"the register of dimensions lacks {unknown} of those that were charged")
    condition = selection.condition(CHARGEBACKS, reader.tags)
    values, joins = dimension_columns(cursor, by, reader.tags, CHARGEBACKS.tag_sources)
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE selected AS SELECT facts.*, {values}
            FROM (SELECT * FROM sums JOIN known USING (dimension_id)) AS facts {joins} WHERE {condition.sql}""",
        condition.parameters,
    )


def _totals(cursor: Cursor) -> Totals:
    sums = ", ".join(
        [
            sum_where("period = 0"),
            sum_where(f"period = 0 AND {_USAGE}"),
            "coalesce(sum(row_count) FILTER (period = 0), 0)::BIGINT",
            sum_where(f"period = 0 AND {_UNALLOCATED}"),
            sum_where("period = 1"),
            sum_where(f"period = 1 AND {_UNALLOCATED}"),
        ]
    )
    return Totals(*cursor.rows(f"SELECT {sums} FROM selected")[0])


def break_down(cursor: Cursor, number: int, name: str, top: int) -> Breakdown:
    """Sum by one of the columns that are grouped by; the table ``ranked{number}`` keeps the rank of each value."""
    table = f"ranked{number}"
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE {table} AS
            SELECT *, row_number() OVER (ORDER BY amount DESC, previous DESC, value) AS rank FROM (
                SELECT d{number} AS value, {sum_where("period = 0")} AS amount, {sum_where("period = 1")} AS previous,
                       {sum_where(f"period = 0 AND {_USAGE}")} AS usage,
                       coalesce(sum(row_count) FILTER (period = 0), 0)::BIGINT AS row_count
                FROM selected GROUP BY value)"""
    )
    fields = "value, amount, previous, usage, row_count"
    items = cursor.rows(f"SELECT {fields} FROM {table} WHERE rank <= {top} ORDER BY rank")
    ((count, amount, previous),) = cursor.rows(
        f"SELECT count(*), sum(amount), sum(previous) FROM {table} WHERE rank > {top}"
    )
    movers = cursor.rows(
        f"""SELECT {fields} FROM {table} WHERE amount <> previous
            ORDER BY abs(amount - previous) DESC, value LIMIT {top}"""
    )
    return Breakdown(
        name,
        tuple(Item(*row) for row in items),
        (count, amount, previous) if count else None,
        tuple(Item(*row) for row in movers),
    )


def _assign_slots(cursor: Cursor, number: int, top: int) -> None:
    """Make the table ``slots``: the place of each selected dimension among the items of the series; the others share
    the last one."""
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE slots AS
            SELECT DISTINCT dimension_id, environment_id,
                   least(rank - 1, (SELECT count(*) FROM ranked{number} WHERE rank <= {top}))::INTEGER AS slot
            FROM selected JOIN ranked{number} ON d{number} IS NOT DISTINCT FROM value"""
    )


def _series(cursor: Cursor, scan: Scan, query: CostQuery, slots: int) -> dict[str, list[Decimal]]:
    days = scan.days()
    if days is None:
        return {}
    when = bucket(query.unit, query.zone, days)
    series: dict[str, list[Decimal]] = {}
    for label, slot, amount in _over_time(cursor, scan, when.keys, when.label):
        if slot is not None:
            series.setdefault(label, [_ZERO] * slots)[slot] = amount
    return series


def _previous(cursor: Cursor, scan: Scan, zone: ZoneInfo) -> dict[date, Decimal]:
    days = scan.days()
    if days is None:
        return {}
    when = bucket("day", zone, days)
    amounts: dict[date, list[Decimal]] = {}
    for label, slot, amount in _over_time(cursor, scan, when.keys, when.label):
        amounts.setdefault(date.fromisoformat(label), []).append(amount if slot is not None else _ZERO)
    return {day: total(parts) for day, parts in amounts.items()}


def _over_time(cursor: Cursor, scan: Scan, keys: str, label: str) -> list[tuple[str, int | None, Decimal]]:
    """Sum by time and slot; what is not selected has no slot."""
    ((is_plain,),) = cursor.rows(
        "SELECT count(*) = count(DISTINCT dimension_id) FROM (SELECT DISTINCT dimension_id, environment_id FROM sums)"
    )
    match = "slots.dimension_id = facts.dimension_id"
    if not is_plain:  # a dimension that is in several environments, which are told apart
        match += " AND slots.environment_id IS NOT DISTINCT FROM facts.environment_id"
    condition = scan.condition()
    found: list[Any] = cursor.rows(
        f"""SELECT {label}, slot, amount FROM (
                SELECT {keys}, slot, sum(amount) AS amount FROM {SOURCE} AS facts LEFT JOIN slots ON {match}
                WHERE {condition.sql} GROUP BY ALL)""",
        condition.parameters,
    )
    return found


def _issues(cursor: Cursor) -> tuple[Issue, ...]:
    rows = cursor.rows(
        f"""SELECT allocation_detail, {_UNALLOCATED} AS unallocated, sum(total) AS amount, sum(row_count)::BIGINT,
                   count(DISTINCT resource_id)
            FROM selected WHERE period = 0 AND allocation_detail IN (SELECT unnest($details::VARCHAR[]))
            GROUP BY ALL ORDER BY amount DESC, allocation_detail, unallocated""",
        {"details": list(ALLOCATION_ISSUES)},
    )
    return tuple(Issue(*row) for row in rows)


def sum_where(condition: str) -> str:
    """Return the sum of the totals of some rows of ``selected``, as SQL."""
    return f"coalesce(sum(total) FILTER ({condition}), 0)::DECIMAL(38, 12)"
