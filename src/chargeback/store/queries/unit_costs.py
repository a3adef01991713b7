"""What one unit of measured usage cost: amounts divided by the usage that is kept of the same days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Final

from chargeback.model.currency import Rates
from chargeback.model.units import Unit, unit_cost
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE, USAGE_TABLE
from chargeback.store.queries.aggregate import columns_of, joins_of
from chargeback.store.queries.converted import MONTH, places_of, rates_relation, times_rate
from chargeback.store.queries.cost_sums import sum_where
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.partials import Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import FINE, named

_BYTES_PER_GIB: Final = 2**30


@dataclass(frozen=True)
class UnitMeasure:
    """What costs are divided by.

    Attributes:
        unit: what one of it is, and how many of what is measured make one.
        dataset: the costs, which are charged to what was measured.
        table: the table of measurements.
        measures: the measures that are added up; without any, each measured subject of a day counts as one.
        who: the column of the dataset with the subject of a measurement.
        place: the column with its resource.
    """

    unit: Unit
    dataset: Dataset
    table: str
    measures: tuple[str, ...]
    who: str
    place: str


_OF_IDENTITIES: Final = partial(
    UnitMeasure, dataset=CHARGEBACKS, table=USAGE_TABLE, who="identity_id", place="resource_id"
)
_OF_TOPICS: Final = partial(
    UnitMeasure, dataset=TOPIC_ATTRIBUTIONS, table=TOPIC_USAGE_TABLE, who="topic_name", place="cluster_resource_id"
)
_GIB: Final = Unit("GiB", _BYTES_PER_GIB)

#: What can be asked for, by name.
UNIT_MEASURES: Final[Mapping[str, UnitMeasure]] = {
    "gib_in": _OF_IDENTITIES(unit=_GIB, measures=("bytes_in",)),
    "gib_out": _OF_IDENTITIES(unit=_GIB, measures=("bytes_out",)),
    "gib_stored": _OF_TOPICS(unit=Unit("GiB-day", _BYTES_PER_GIB), measures=("topic_retained_bytes",)),
    "topic": _OF_TOPICS(unit=Unit("topic-day", 1), measures=()),
}


@dataclass(frozen=True)
class UnitCost:
    """What one group costs.

    Attributes:
        key: the values by which it is grouped.
        amount: its cost on the days that count.
        excluded: its cost on the other days, whose usage was not measured.
        usage: its usage in units, rounded to six places; None if nothing was measured.
        unit_cost: the amount divided by the exact usage, rounded to twelve places; None without usage.
        days: on how many UTC days the amount lies.
        days_with_usage: on how many of them there is usage above zero.
    """

    key: tuple[str | None, ...]
    amount: Decimal
    excluded: Decimal
    usage: Decimal | None
    unit_cost: Decimal | None
    days: int
    days_with_usage: int


@dataclass(frozen=True)
class UnitCosts:
    """The groups with the largest amounts (``groups`` tells how many there are), everything together, and the days of
    which costs were left out."""

    items: tuple[UnitCost, ...]
    groups: int
    total: UnitCost
    missing_days: tuple[date, ...]


def unit_costs(
    reader: TenantReader,
    measure: UnitMeasure,
    selection: Selection,
    by: Sequence[str],
    top: int,
    rates: Rates | None = None,
) -> UnitCosts:
    """Return what a unit cost in the selected rows, by columns of the measure's dataset.

    The usage is that of the subjects and resources that have selected costs, on the days of these. On a day that lacks
    measurements of a resource that is otherwise measured in the window, the costs of the resource are left out; costs
    of resources that are never measured count on the days that have measurements at all. Usage counts once in each
    group and once in the total.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: the costs cannot be filtered or grouped so.
    """
    _collect_costs(reader, measure, selection, by, rates)
    _collect_usage(reader, measure, selection)
    _join(reader)
    keys = [f"d{number}" for number in range(len(by))]
    items = _sums(reader, measure, keys, places_of(rates))
    (whole,) = _sums(reader, measure, [], places_of(rates)) or [_NOTHING]
    missing = reader.cursor.rows("SELECT DISTINCT date FROM unit_rows WHERE NOT counts ORDER BY date")
    return UnitCosts(tuple(items[:top]), len(items), whole, tuple(day for (day,) in missing))


_NOTHING: Final = UnitCost((), Decimal(0), Decimal(0), None, None, 0, 0)


def _collect_costs(
    reader: TenantReader, measure: UnitMeasure, selection: Selection, by: Sequence[str], rates: Rates | None
) -> None:
    """Make the table ``unit_costs``: the selected amounts by UTC day, subject, resource and group."""
    dataset, cursor = measure.dataset, reader.cursor
    keys = reader.group_keys(dataset, by)
    texts = "".join(f", d{number} VARCHAR" for number in range(len(by)))
    cursor.run(
        f"CREATE OR REPLACE TEMP TABLE unit_costs "
        f"(date DATE, who VARCHAR, place VARCHAR{texts}, total DECIMAL(38, {places_of(rates)}), total{FINE} HUGEINT)"
    )
    if reader.days_of(dataset, selection) is None:
        return
    columns = ", ".join(filter(None, [f"date, {measure.who} AS who, {measure.place} AS place", columns_of(keys)]))

    def _insert(source: Addends) -> None:
        rows = f"FROM {source.relation} AS facts {joins_of(keys)} WHERE {source.condition.sql} GROUP BY ALL"
        amounts = dict(zip(("total", f"total{FINE}"), source.in_parts(), strict=True))
        sums = f"SELECT {columns}, {named(amounts)} {rows}"
        if rates:
            products = named(times_rate("total", is_fine=True))
            sums = f"""SELECT * EXCLUDE (rate_month, rate, rate_units) REPLACE ({products})
                FROM (SELECT *, {MONTH} FROM ({sums})) JOIN {rates_relation(rates)} USING (rate_month)"""
        cursor.run(f"INSERT INTO unit_costs BY NAME {sums}", source.condition.parameters)

    reader.add_up(dataset, selection, f"{columns} {joins_of(keys)}", _insert)


def _collect_usage(reader: TenantReader, measure: UnitMeasure, selection: Selection) -> None:
    """Make the table ``unit_usage``: what was measured by UTC day, subject and resource."""
    files = reader.snapshot(measure.table).within(selection.window.days())
    amount = "sum(value)" if measure.measures else "1::DECIMAL(38, 6)"
    wanted = "measure IN (SELECT unnest($measures::VARCHAR[]))" if measure.measures else "TRUE"
    rows = f"SELECT date, subject AS who, resource_id AS place, {amount} AS used FROM {SOURCE} WHERE {wanted}"
    nothing = "SELECT NULL::DATE AS date, '' AS who, '' AS place, 0::DECIMAL(38, 6) AS used WHERE FALSE"
    parameters: dict[str, object] = {"files": files} if files else {}
    if files and measure.measures:
        parameters["measures"] = list(measure.measures)
    sql = f"{rows} GROUP BY date, subject, resource_id" if files else nothing
    reader.cursor.run(f"CREATE OR REPLACE TEMP TABLE unit_usage AS {sql}", parameters)


def _join(reader: TenantReader) -> None:
    """Make the table ``unit_rows``: the costs, and whether they count."""
    reader.cursor.run(
        """CREATE OR REPLACE TEMP TABLE unit_rows AS
            SELECT costs.*, CASE WHEN places.place IS NULL THEN days.date IS NOT NULL
                                 ELSE measured.place IS NOT NULL END AS counts
            FROM unit_costs AS costs
            LEFT JOIN (SELECT DISTINCT place FROM unit_usage) AS places ON places.place = costs.place
            LEFT JOIN (SELECT DISTINCT date FROM unit_usage) AS days ON days.date = costs.date
            LEFT JOIN (SELECT DISTINCT date, place FROM unit_usage) AS measured
                ON measured.date = costs.date AND measured.place = costs.place"""
    )


def _sums(reader: TenantReader, measure: UnitMeasure, keys: Sequence[str], places: int) -> list[UnitCost]:
    """Return the sums of each group, or of everything, the largest amount first."""
    names = "".join(f"{key}, " for key in keys)
    same = " AND ".join(f"amounts.{key} IS NOT DISTINCT FROM used.{key}" for key in keys) or "TRUE"
    rows = reader.cursor.rows(
        f"""WITH amounts AS (
                SELECT {names}{sum_where("counts", places=places)} AS amount,
                       {sum_where("NOT counts", places=places)} AS excluded,
                       count(DISTINCT date) FILTER (counts) AS days
                FROM unit_rows {"GROUP BY ALL" if keys else ""}),
            used AS (
                SELECT {names}sum(used) AS used, count(DISTINCT date) FILTER (used > 0) AS days_with_usage
                FROM (SELECT DISTINCT {names}date, who, place FROM unit_rows WHERE counts)
                JOIN unit_usage USING (date, who, place) {"GROUP BY ALL" if keys else ""})
            SELECT {"".join(f"amounts.{key}, " for key in keys)}amount, excluded, used, days,
                   coalesce(days_with_usage, 0)
            FROM amounts LEFT JOIN used ON {same}
            ORDER BY {", ".join(["amount DESC", *(f"amounts.{key} NULLS FIRST" for key in keys)])}"""
    )
    found = []
    for row in rows:
        amount, excluded, used, days, with_usage = row[len(keys) :]
        shown, cost = unit_cost(amount, used, measure.unit)
        found.append(UnitCost(tuple(row[: len(keys)]), amount, excluded, shown, cost, days, with_usage))
    return found
