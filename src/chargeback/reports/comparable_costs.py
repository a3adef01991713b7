"""Costs whose days can be compared: at the latest prices and by the latest rules, without credits and fees.

Changes of prices, of rules of cost categories and of tags have no effect here, so that days differ only by usage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Final

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.facts.tables import USAGE_TABLE
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.keys import ByDay, keys_of
from chargeback.store.queries.lookups import CATEGORY_PREFIX
from chargeback.store.queries.partials import REALLOCATED
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection

#: Costs that are billed on at most this many days of a month are fees.
_FEE_DAYS: Final = 3
#: The columns by which a cost category assigns values.
_ASSIGNED: Final = ("identity_id", "product_type", "resource_id")


@dataclass(frozen=True, order=True)
class CostSeries:
    """The daily costs of one payer: of an identity or, with a cost ``category``, of one of its values; for a product
    group, or (empty) for all of them."""

    who: str
    product_category: str
    category: str = ""


#: The identity that is charged, and the product type and resource.
Part = tuple[str, str, str]


@dataclass(frozen=True)
class SeriesDay:
    """The cost of a part of a series on a day, and the line of its largest amount."""

    cost: float
    line: str


@dataclass(frozen=True)
class Fee:
    """A fee, billed on a few days of a month for a product type of a resource: its cost in a month, the last of its
    days, and its cost in the month before."""

    product_type: str
    resource_id: str
    last_date: date
    before: float
    now: float


class ComparableCosts:
    """The visible costs of some days. With a cost ``category``, those of its values as well: the costs of an identity
    for a product type of a resource are assigned on all days as on the last one."""

    def __init__(self, reader: TenantReader, days: DayRange, category: str | None) -> None:
        """Read the costs.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        self._reader, self._days, self._cursor = reader, days, reader.cursor
        self._category = category or ""
        self._charged, self._source, self._assigned = "", "", ""
        self._parents: Mapping[str, str] = {}
        charged = reader.scan(CHARGEBACKS, Selection.of_days(days))
        if not charged.files:
            return
        prices, rows = _prices(reader, days), reader.cursor.new_name("charged_by_day")
        amount, condition = reader.plan.visible_amount(CHARGEBACKS, charged), charged.condition()
        self._cursor.run(
            f"""CREATE TEMP TABLE {rows} AS
                SELECT date, identity_id, product_category, product_type, resource_id, sum({amount})::DOUBLE AS amount,
                       arg_max(line_id, {amount}) AS line_id, min(policy_hash) AS policy_hash
                FROM {SOURCE} WHERE {condition.sql} AND amount > 0 GROUP BY ALL""",
            condition.parameters,
        )
        self._charged = rows
        self._source = f"""(
            SELECT *, amount * coalesce(factor, 1) AS cost
            FROM (SELECT *, count(*) OVER (
                      PARTITION BY identity_id, product_type, resource_id, date_trunc('month', date)) AS days_of_month
                  FROM {rows})
            LEFT JOIN {prices} USING (date, resource_id, product_type)
            WHERE days_of_month > {_FEE_DAYS})"""
        if category is not None:
            self._assigned = _assigned(reader, days, category)
            found = reader.categories.index.category(category)
            last = days.end - ONE_DAY
            self._parents = next((each.parents for each in found.hierarchies if last in each.during), {})

    def of_identities(self) -> dict[CostSeries, dict[date, float]]:
        """Return the cost of each identity for each product group by day."""
        found: dict[CostSeries, dict[date, float]] = {}
        columns = "identity_id, product_category, date, sum(cost)"
        for identity, group, day, cost in self._rows(f"SELECT {columns} FROM {self._source} GROUP BY ALL"):
            found.setdefault(CostSeries(identity, group), {})[day] = cost
        return found

    def of_values(self) -> dict[CostSeries, dict[date, float]]:
        """Return the cost of each value by day: for each product group and, if a value has several groups or values
        below it, for all groups."""
        if not self._assigned:
            return {}
        found: dict[CostSeries, dict[date, float]] = {}
        columns = "value, product_category, date, sum(cost * part)"
        for value, group, day, cost in self._rows(f"SELECT {columns} FROM {self._values} GROUP BY ALL"):
            found.setdefault(CostSeries(value, group, self._category), {})[day] = cost
        totals: dict[CostSeries, dict[date, float]] = {}
        for series, days in found.items():
            for value in self._path(series.who):
                total = totals.setdefault(CostSeries(value, "", self._category), {})
                for day, cost in days.items():
                    total[day] = total.get(day, 0.0) + cost
        groups, above = Counter(series.who for series in found), set(self._parents.values())
        return found | {
            series: days for series, days in totals.items() if groups[series.who] != 1 or series.who in above
        }

    def _path(self, value: str) -> Iterator[str]:
        """Yield a value and its ancestors."""
        yield value
        while value in self._parents:
            value = self._parents[value]
            yield value

    def children(self, costs: Mapping[CostSeries, Mapping[date, float]]) -> dict[CostSeries, dict[CostSeries, float]]:
        """Return which parts of other series of ``costs`` belong to the series of values."""
        found: dict[CostSeries, dict[CostSeries, float]] = {}
        if not self._assigned:
            return found
        columns = "value, identity_id, product_category, sum(cost * part)"
        for value, identity, group, cost in self._rows(f"SELECT {columns} FROM {self._values} GROUP BY ALL"):
            child = CostSeries(identity, group)
            whole = sum(costs[child].values())
            found.setdefault(CostSeries(value, group, self._category), {})[child] = cost / whole if whole else 0.0
        for series in [each for each in costs if each.category]:
            total = CostSeries(series.who, "", self._category)
            if series == total or total not in costs:
                if series.who not in self._parents:
                    continue
                total = CostSeries(self._parents[series.who], "", self._category)
            found.setdefault(total, {})[series] = 1.0
        return found

    def of_parts(self, wanted: Collection[CostSeries]) -> dict[CostSeries, dict[Part, dict[date, SeriesDay]]]:
        """Return the parts of some series by day."""
        found: dict[CostSeries, dict[Part, dict[date, SeriesDay]]] = {each: {} for each in wanted}
        columns = "identity_id, product_category, product_type, resource_id, date, line_id"
        parameters = {"identities": sorted({each.who for each in wanted if not each.category})}
        which = "WHERE list_contains($identities, identity_id)"
        for row in self._rows(f"SELECT NULL, {columns}, cost FROM {self._source} {which}", parameters):
            _add(found, CostSeries(row[1], row[2]), row)
        if self._assigned and any(each.category for each in wanted):
            for row in self._rows(f"SELECT value, {columns}, cost * part FROM {self._values}"):
                _add(found, CostSeries(row[0], row[2], self._category), row)
                for value in self._path(row[0]):
                    _add(found, CostSeries(value, "", self._category), row)
        return found

    def fees(self) -> list[Fee]:
        """Return the fees, each with its costs in its last month and in the month before."""
        if not self._source:
            return []
        rows = self._cursor.rows(
            f"""SELECT product_type, resource_id, month, sum(amount), max(date) FROM (
                    SELECT *, date_trunc('month', date)::DATE AS month,
                           count(DISTINCT date) OVER (
                               PARTITION BY product_type, resource_id, date_trunc('month', date)) AS days_of_month
                    FROM {self._charged})
                WHERE days_of_month <= {_FEE_DAYS} GROUP BY ALL ORDER BY product_type, resource_id, month"""
        )
        found = {
            now[:2]: Fee(now[0], now[1], now[4], before[3], now[3])
            for before, now in pairwise(rows)
            if before[:2] == now[:2] and (before[2] + timedelta(days=31)).replace(day=1) == now[2]
        }
        return list(found.values())

    def of_all_identities(self) -> dict[tuple[str, str], dict[date, SeriesDay]]:
        """Return the charges of all identities for each product type of a resource, by day."""
        found: dict[tuple[str, str], dict[date, SeriesDay]] = {}
        columns = "product_type, resource_id, date, sum(cost)"
        for product_type, resource, day, cost in self._rows(f"SELECT {columns} FROM {self._source} GROUP BY ALL"):
            found.setdefault((product_type, resource), {})[day] = SeriesDay(cost, "")
        return found

    def policies(self) -> dict[str, dict[date, str]]:
        """Return the hash of the policy by which each product type was split, by day."""
        found: dict[str, dict[date, str]] = {}
        columns = "product_type, date, min(policy_hash)"
        for product_type, day, policy in self._rows(f"SELECT {columns} FROM {self._source} GROUP BY ALL ORDER BY date"):
            found.setdefault(product_type, {})[day] = policy
        return found

    def usage(self, drivers: Mapping[str, str]) -> dict[CostSeries, tuple[str, dict[date, float]]]:
        """Return the usage that drives the costs of identities: the measure of the product group, and its value on each
        day with costs."""
        found: dict[CostSeries, tuple[str, dict[date, float]]] = {}
        files = self._reader.snapshot(USAGE_TABLE).within(self._days)
        if not drivers or not files:
            return found
        rows = self._rows(
            f"""SELECT subject, product_category, measure, date, sum(value)::DOUBLE FROM {SOURCE}
                JOIN (SELECT DISTINCT date, identity_id AS subject, resource_id, product_category FROM {self._source})
                     USING (date, subject, resource_id)
                JOIN (SELECT unnest($groups::VARCHAR[]) AS product_category, unnest($measures::VARCHAR[]) AS measure)
                     USING (product_category, measure)
                GROUP BY ALL""",
            {"files": files, "groups": list(drivers), "measures": list(drivers.values())},
        )
        for identity, group, measure, day, used in rows:
            found.setdefault(CostSeries(identity, group), (measure, {}))[1][day] = used
        return found

    @property
    def _values(self) -> str:
        return f"(SELECT * FROM {self._source} JOIN {self._assigned} USING ({', '.join(_ASSIGNED)}))"

    def _rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        return self._cursor.rows(sql, parameters) if self._source else []


def _add(found: dict[CostSeries, dict[Part, dict[date, SeriesDay]]], series: CostSeries, row: tuple[Any, ...]) -> None:
    """Add a row of :meth:`ComparableCosts.of_parts` to its series, if that is requested."""
    if series not in found:
        return
    _, identity, _, product_type, resource, day, line, cost = row
    days = found[series].setdefault((identity, product_type, resource), {})
    days[day] = SeriesDay(cost + (days[day].cost if day in days else 0.0), line)


def _assigned(reader: TenantReader, days: DayRange, category: str) -> str:
    """Make the table of the values to which costs are assigned on their last day, with the parts; return its name.
    Reallocated costs count for the values that reallocate them."""
    keys = (ByDay(), *keys_of(CHARGEBACKS, (*_ASSIGNED, f"{CATEGORY_PREFIX}{category}")))
    direct = REALLOCATED[0]
    sums = reader.sums(Sums(CHARGEBACKS, Selection.of_days(days), keys, of=(direct,)))
    names = ", ".join(f"d{number} AS {name}" for number, name in enumerate((*_ASSIGNED, "value")))
    return sums.table(
        "assigned",
        f"""SELECT {", ".join(_ASSIGNED)}, value, direct / sum(direct) OVER of_all AS part
            FROM (SELECT {names}, date, {direct}::DOUBLE AS direct FROM sums)
            WHERE direct > 0
            WINDOW of_all AS (PARTITION BY {", ".join(_ASSIGNED)}, date)
            QUALIFY date = max(date) OVER (PARTITION BY {", ".join(_ASSIGNED)})""",
    )


def _prices(reader: TenantReader, days: DayRange) -> str:
    """Make the table of the factors that convert amounts of a day to the latest price; return its name."""
    billed = reader.unscoped().scan(BILLING_LINES, Selection.of_days(days))
    table = reader.cursor.new_name("prices")
    if not billed.files:
        reader.cursor.run(
            f"CREATE TEMP TABLE {table} (date DATE, resource_id VARCHAR, product_type VARCHAR, factor DOUBLE)", {}
        )
        return table
    condition = billed.condition()
    reader.cursor.run(
        f"""CREATE TEMP TABLE {table} AS
            SELECT date, resource_id, product_type,
                   arg_max(price, date) OVER (PARTITION BY resource_id, product_type) / price AS factor
            FROM (SELECT date, resource_id, product_type, (sum(total_cost) / sum(quantity))::DOUBLE AS price
                  FROM {SOURCE} WHERE {condition.sql} AND quantity > 0 AND total_cost > 0 GROUP BY ALL)""",
        condition.parameters,
    )
    return table
