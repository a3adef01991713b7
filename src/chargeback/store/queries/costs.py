"""What a period cost: by several columns at once, over time, and compared with another period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from chargeback.model.chargeback import ALLOCATION_ISSUES
from chargeback.model.currency import Rates
from chargeback.model.days import InstantRange
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.keys import ByTime, Key, bucket, keys_of
from chargeback.store.queries.partials import DISTINCT_ROWS, ROW_COUNT
from chargeback.store.queries.question import SumRelation, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.sql_format import FINE, distance, exact, sum_exact

#: What costs can be grouped and filtered by, besides tags and cost categories.
COST_COLUMNS: Final = CHARGEBACKS.groups

_ZERO: Final = Decimal("0.000000000000")
_ISSUES: Final = ColumnFilter("allocation_detail", frozenset(ALLOCATION_ISSUES))
_SUMS: Final = (*CHARGEBACKS.sums, ROW_COUNT, DISTINCT_ROWS)


@dataclass(frozen=True)
class CostQuery:
    """A query of costs.

    Attributes:
        selection: the rows of the period.
        previous: the period that it is compared with, if any.
        by: columns, or ``tag:<key>``, each of which makes a breakdown.
        series: which of ``by`` is broken down over time.
        top: how many values a breakdown names.
        unit: day, week or month.
        zone: the time zone of these units.
        issues: whether allocation issues are summed as well.
        rates: of the currency of the result, if it is not the bill's.
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
    """What was not allocated as intended for one reason, to no identity (``unallocated``) or by the next method."""

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
        ValueError: costs cannot be filtered or grouped by these columns.
    """
    periods = periods_of(query.selection, query.previous)
    question = Sums(CHARGEBACKS, query.selection, keys_of(CHARGEBACKS, query.by), _SUMS, query.rates, periods)
    each = reader.sums_of_each(question)
    ranked = [Ranked(sums, column, name, query.top) for (sums, column), name in zip(each, query.by, strict=True)]
    breakdowns = tuple(value.breakdown() for value in ranked)
    place = query.by.index(query.series)
    # The totals are those of every breakdown; without further digits they are added up faster.
    sums = min((sums for sums, _ in each), key=lambda sums: sums.is_fine)
    return Costs(
        totals=_totals(sums),
        breakdowns=breakdowns,
        issues=_issues(reader, question) if query.issues else (),
        series=_series(reader, query, question.by[place], ranked[place].table, len(breakdowns[place].items)),
        previous={} if query.previous is None else _previous(reader, query, query.previous),
    )


def periods_of(selection: Selection, previous: InstantRange | None) -> tuple[InstantRange, ...]:
    """Return the window of a selection and, if there is one, that of the period that it is compared with."""
    return (selection.window,) if previous is None else (selection.window, previous)


def days_with_rows(reader: TenantReader, window: InstantRange) -> int:
    """Return how many UTC days have chargebacks inside ``window``, visible ones or not."""
    scan = reader.unscoped().scan(CHARGEBACKS, Selection(window))
    days = {file.day for file in scan.files}
    partial = scan.only(scan.partial_days)
    if not partial.files:
        return len(days)
    condition = partial.condition()
    sql = f"SELECT DISTINCT date FROM {SOURCE} WHERE {condition.sql}"
    found = {day for (day,) in reader.cursor.rows(sql, condition.parameters)}
    return len(days - scan.partial_days | found)


def _totals(sums: SumRelation) -> Totals:
    now, before = "period = 0", "period = 1"
    rows = f"coalesce(sum({DISTINCT_ROWS}) FILTER ({now}), 0)::BIGINT"
    found = [sums.total_or_zero("total", where=now), sums.total_or_zero("used", where=now), rows]
    found += [sums.total_or_zero(name, where=when) for name, when in (("unowned", now), ("total", before))]
    found.append(sums.total_or_zero("unowned", where=before))
    return Totals(*sums.rows(f"SELECT {', '.join(found)} FROM sums")[0])


class Ranked:
    """The values of one ``column`` of the sums of two periods, by descending amount; ``name`` is what it is by, and
    ``top`` how many values are named."""

    def __init__(self, sums: SumRelation, column: str, name: str, top: int) -> None:
        """Rank the values: the :attr:`table` has the rank of each."""
        self.name = name
        self.top = top
        self._cursor = sums.cursor
        self._places, self._is_fine = sums.question.places, sums.is_fine
        now, before = "period = 0", "period = 1"
        self.table = sums.table(
            "ranked",
            f"""SELECT *, row_number() OVER (ORDER BY amount DESC, previous DESC, value) AS rank FROM (
                SELECT {column} AS value, {sums.total_or_zero(where=now)} AS amount,
                       {sums.total_or_zero(where=before)} AS previous,
                       {sums.total_or_zero("used", where=now)} AS usage,
                       coalesce(sum(row_count) FILTER ({now}), 0)::BIGINT AS row_count
                FROM sums GROUP BY value)""",
        )

    def breakdown(self) -> Breakdown:
        """Return the values with the largest amounts, the others together, and the values that changed most."""
        fields, named = "value, amount, previous, usage, row_count", f"rank <= {self.top}"
        others = [sum_exact(name, self._places, is_fine=self._is_fine) for name in ("amount", "previous")]
        moved = distance("amount", "previous", self._places, is_fine=self._is_fine)
        # One statement, because planning three takes longer than reading the few rows.
        rows = self._cursor.rows(
            f"""SELECT 'item' AS part, rank AS place, {fields} FROM {self.table} WHERE {named}
                UNION ALL SELECT 'others', NULL, NULL, {", ".join(others)}, NULL, count(*) FROM {self.table}
                    WHERE NOT {named}
                UNION ALL (
                    SELECT 'mover', row_number() OVER (ORDER BY {moved} DESC, value) AS place, {fields}
                    FROM {self.table} WHERE amount <> previous ORDER BY place LIMIT {self.top})
                ORDER BY part, place"""
        )
        items, movers = (tuple(Item(*row[2:]) for row in rows if row[0] == part) for part in ("item", "mover"))
        ((amount, previous, count),) = [(row[3], row[4], row[6]) for row in rows if row[0] == "others"]
        return Breakdown(self.name, items, (count, amount, previous) if count else None, movers)


def _series(reader: TenantReader, query: CostQuery, key: Key, ranked: str, items: int) -> dict[str, list[Decimal]]:
    """Sum by time and by the place of a value among the items of a table of ranks; the others share the last place."""
    sums = reader.sums(Sums(CHARGEBACKS, query.selection, (ByTime(query.unit, query.zone), key), rates=query.rates))
    if sums.days is None:
        return {}
    label = bucket(query.unit, query.zone, sums.days).label
    rows = sums.rows(
        f"""SELECT {label}, least(rank - 1, {items})::INTEGER AS slot, {sums.total()}
            FROM sums JOIN {ranked} ON d0 IS NOT DISTINCT FROM value GROUP BY ALL"""
    )
    series: dict[str, list[Decimal]] = {}
    for time, slot, amount in rows:
        series.setdefault(time, [_ZERO] * (items + 1))[slot] = amount
    return series


def _previous(reader: TenantReader, query: CostQuery, window: InstantRange) -> dict[date, Decimal]:
    """Sum by day of the other period; zero on days that have rows, but no selected ones."""
    selection, everything = replace(query.selection, window=window), Selection(window)
    found: dict[date, Decimal] = {}
    if not reader.sees_everything or selection != everything:
        found = dict.fromkeys(_by_day(reader.unscoped(), everything, query), _ZERO)
    return found | _by_day(reader, selection, query)


def _by_day(reader: TenantReader, selection: Selection, query: CostQuery) -> dict[date, Decimal]:
    sums = reader.sums(Sums(CHARGEBACKS, selection, (ByTime(reader.smallest_unit, query.zone),), rates=query.rates))
    return dict(sums.rows(f"SELECT bucket, {sums.amount()} FROM sums"))


def _issues(reader: TenantReader, question: Sums) -> tuple[Issue, ...]:
    """Sum by reason and by whether the cost is unallocated."""
    selection = replace(question.selection, columns=(*question.selection.columns, _ISSUES))
    by = keys_of(CHARGEBACKS, ("allocation_detail", "resource_id"))
    sums = reader.sums(replace(question, selection=selection, by=by, periods=question.periods[:1]))
    amount = exact("sum(part)", "sum(fine)" if sums.is_fine else None, question.places)
    rows = sums.rows(
        f"""SELECT reason, unallocated, {amount} AS amount,
                   sum(of_part)::BIGINT, count(DISTINCT resource)
            FROM (SELECT d0 AS reason, d1 AS resource, TRUE AS unallocated, unowned AS part, unowned{FINE} AS fine,
                         unowned_rows AS of_part FROM sums
                  UNION ALL
                  SELECT d0, d1, FALSE, total - unowned, total{FINE} - unowned{FINE}, row_count - unowned_rows
                  FROM sums)
            WHERE of_part > 0 GROUP BY ALL ORDER BY amount DESC, reason, unallocated"""
    )
    return tuple(Issue(*row) for row in rows)
