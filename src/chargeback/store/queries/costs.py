"""What a period cost: by several columns at once, over time, and beside another period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from chargeback.model.chargeback import ALLOCATION_ISSUES
from chargeback.model.currency import Rates
from chargeback.model.days import InstantRange
from chargeback.store.queries.aggregate import GroupKey
from chargeback.store.queries.calendar import bucket
from chargeback.store.queries.converted import MONTH, MonthWindow, convert_table, month_windows, places_of, sums_sql
from chargeback.store.queries.cost_sums import CostSums, sum_where
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import ONCE, Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.sql_format import FINE, distance, exact, sum_exact

_ZERO: Final = Decimal("0.000000000000")
_ISSUES: Final = ColumnFilter("allocation_detail", frozenset(ALLOCATION_ISSUES))
_ISSUE_KEYS: Final = ("allocation_detail", "resource_id")
_NO_KEY: Final = GroupKey("NULL AS nothing")
#: The sums of chargebacks that are amounts.
_AMOUNTS: Final = ("total", "used", "unowned")


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
        issues: whether what was not allocated as intended is summed as well.
        rates: of the currency of the answer, where it is another than the bill's.
    """

    selection: Selection
    previous: InstantRange | None
    by: tuple[str, ...]
    series: str
    top: int
    unit: str
    zone: ZoneInfo
    issues: bool = True
    rates: Rates | None = None


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


@dataclass(frozen=True)
class _Place:
    """By what sums over time are divided as well: ``sql`` over ``key`` and what is ``joined`` to it."""

    key: GroupKey = _NO_KEY
    sql: str = "NULL AS slot"
    joined: str = ""


_NO_PLACE: Final = _Place()


def costs(reader: TenantReader, query: CostQuery) -> Costs:
    """Return what the selected rows cost.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    windows = [query.selection.window, *([] if query.previous is None else [query.previous])]
    parts = month_windows(windows, query.rates)
    sums = CostSums(reader, query.selection, [part.window for part in parts], (*query.by, *_ISSUE_KEYS))
    tables: dict[int, str] = {}
    for group in sums.together():
        numbers = [number for number in group if number < len(query.by)]
        if numbers:
            table = f"sums{numbers[0]}"
            sums.collect(table, numbers)
            convert_table(reader.cursor, table, parts, _AMOUNTS)
            tables |= dict.fromkeys(numbers, table)
    places = places_of(query.rates)
    breakdowns = tuple(
        break_down(reader.cursor, tables[number], (number, name), query.top, places)
        for number, name in enumerate(query.by)
    )
    series = query.by.index(query.series)
    return Costs(
        totals=_totals(reader.cursor, tables[0], places),
        breakdowns=breakdowns,
        issues=_issues(reader.cursor, sums, parts, len(query.by), places) if query.issues else (),
        series=_series(reader, query, sums.keys[series], len(breakdowns[series].items)),
        previous={} if query.previous is None else _previous(reader, query, query.previous),
    )


def days_with_rows(reader: TenantReader, window: InstantRange) -> int:
    """Return how many UTC days have chargebacks inside ``window``, whoever may see them."""
    scan = reader.unscoped().scan(CHARGEBACKS, Selection(window))
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
    if reader.days_of(dataset, selection) is None:
        return {}

    def _sum(source: Addends) -> dict[date, Decimal]:
        sql = f"SELECT date, {source.amount()} FROM {source.relation} WHERE {source.condition.sql} GROUP BY date"
        return dict(reader.cursor.rows(sql, source.condition.parameters))

    return reader.add_up(dataset, selection, "date", _sum)


def _totals(cursor: Cursor, table: str, places: int) -> Totals:
    def of(name: str, period: int) -> str:
        return sum_where(f"period = {period}", name, places)

    rows = f"coalesce(sum({ONCE}) FILTER (period = 0), 0)::BIGINT"
    sums = [of("total", 0), of("used", 0), rows, of("unowned", 0), of("total", 1), of("unowned", 1)]
    return Totals(*cursor.rows(f"SELECT {', '.join(sums)} FROM {table}")[0])


def break_down(cursor: Cursor, table: str, by: tuple[int, str], top: int, places: int) -> Breakdown:
    """Sum a table of sums, which have so many decimal ``places`` before their further digits, by one of its columns:
    its place and name. The table ``ranked{place}`` keeps the rank of each value."""
    number, name = by
    ranked = f"ranked{number}"
    before, now = "period = 1", "period = 0"
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE {ranked} AS
            SELECT *, row_number() OVER (ORDER BY amount DESC, previous DESC, value) AS rank FROM (
                SELECT d{number} AS value, {sum_where(now, places=places)} AS amount,
                       {sum_where(before, places=places)} AS previous, {sum_where(now, "used", places)} AS usage,
                       coalesce(sum(row_count) FILTER ({now}), 0)::BIGINT AS row_count
                FROM {table} GROUP BY value)"""
    )
    fields = "value, amount, previous, usage, row_count"
    items = cursor.rows(f"SELECT {fields} FROM {ranked} WHERE rank <= {top} ORDER BY rank")
    ((count, amount, previous),) = cursor.rows(
        f"SELECT count(*), {sum_exact('amount', places)}, {sum_exact('previous', places)} "
        f"FROM {ranked} WHERE rank > {top}"
    )
    movers = cursor.rows(
        f"""SELECT {fields} FROM {ranked} WHERE amount <> previous
            ORDER BY {distance("amount", "previous", places)} DESC, value LIMIT {top}"""
    )
    return Breakdown(
        name,
        tuple(Item(*row) for row in items),
        (count, amount, previous) if count else None,
        tuple(Item(*row) for row in movers),
    )


def _series(reader: TenantReader, query: CostQuery, key: GroupKey, items: int) -> dict[str, list[Decimal]]:
    """Sum by time and by the place of a value among the items; the others share the last place."""
    number = query.by.index(query.series)
    ranked = f"JOIN ranked{number} ON d{number} IS NOT DISTINCT FROM value"
    place = f"least(rank - 1, {items})::INTEGER AS slot"
    rows = _over_time(reader, query.selection, query, query.unit, _Place(key, place, ranked))
    series: dict[str, list[Decimal]] = {}
    for label, slot, amount in rows:
        series.setdefault(label, [_ZERO] * (items + 1))[slot] = amount
    return series


def _previous(reader: TenantReader, query: CostQuery, window: InstantRange) -> dict[date, Decimal]:
    """Sum by day of the other period; zero on days that have rows, of which none is selected."""
    found: dict[date, Decimal] = {}
    selection, everything = replace(query.selection, window=window), Selection(window)
    if reader.scope is not None or selection != everything:
        rows = _over_time(reader.unscoped(), everything, query, "day")
        found = {date.fromisoformat(day): _ZERO for day, _, _ in rows}
    return found | {date.fromisoformat(day): amount for day, _, amount in _over_time(reader, selection, query, "day")}


def _over_time(
    reader: TenantReader, selection: Selection, query: CostQuery, unit: str, place: _Place = _NO_PLACE
) -> list[tuple[str, int, Decimal]]:
    """Sum the selected rows by unit of time, and by ``place``; zone and currency are those of the query."""
    days = reader.days_of(CHARGEBACKS, selection)
    if days is None:
        return []
    when, key = bucket(unit, query.zone, days), place.key

    def _sum(source: Addends) -> list[Any]:
        sums = sums_sql(source.only({"total"}), f"{when.keys}, {key.column}", key.joins, query.rates)
        total = source.exact("sum(total)", places_of(query.rates))
        return reader.cursor.rows(
            f"SELECT {when.label}, {place.sql}, {total} FROM ({sums}) {place.joined} GROUP BY ALL",
            source.condition.parameters,
        )

    month = MONTH if query.rates else ""
    return reader.add_up(CHARGEBACKS, selection, f"{when.keys} {key.column} {key.joins} {month}", _sum)


def _issues(cursor: Cursor, sums: CostSums, parts: Sequence[MonthWindow], first: int, places: int) -> tuple[Issue, ...]:
    """Sum by reason and by whether nobody was charged; the keys of issues begin at the place ``first``."""
    periods = [number for number, part in enumerate(parts) if part.period == 0]
    sums.collect("issues", [first, first + 1], also=(_ISSUES,), periods=periods)
    convert_table(cursor, "issues", parts, _AMOUNTS)
    reason, resource = f"d{first} AS reason", f"d{first + 1} AS resource"
    rows = cursor.rows(
        f"""WITH parts AS (
                SELECT {reason}, {resource}, TRUE AS unallocated, unowned AS part, unowned{FINE} AS fine,
                       unowned_rows AS of_part FROM issues
                UNION ALL
                SELECT {reason}, {resource}, FALSE, total - unowned, total{FINE} - unowned{FINE},
                       row_count - unowned_rows FROM issues)
            SELECT reason, unallocated, {exact("sum(part)", "sum(fine)", places)} AS amount, sum(of_part)::BIGINT,
                   count(DISTINCT resource)
            FROM parts WHERE of_part > 0 GROUP BY ALL ORDER BY amount DESC, reason, unallocated"""
    )
    return tuple(Issue(*row) for row in rows)
