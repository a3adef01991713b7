"""Unit costs: amounts divided by the stored usage of the same days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final, Literal

from pydantic import Field

from chargeback.model.currency import Conversion, Rates
from chargeback.model.money import PLACES, from_units
from chargeback.model.usage import QUANTITY_PLACES
from chargeback.reports.answers import (
    CONVERSION,
    Amount,
    ConversionItem,
    Exact,
    Grouped,
    ResponseModel,
    currency_of,
)
from chargeback.reports.names import display_names
from chargeback.reports.periods import CalendarPeriod
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.topic_costs import of_topics
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE, USAGE_TABLE
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import ByColumn, ByDay, Key, keys_of
from chargeback.store.queries.question import SumRelation, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import FINE, named


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, and its ``size`` in units of the measurement: a GiB is 2³⁰ bytes."""

    name: str
    size: int


_COST_PLACES: Final = PLACES


def unit_cost(amount: Decimal, usage: Decimal | None, unit: Unit) -> tuple[Decimal | None, Decimal | None]:
    """Return a usage (as measured) in units, and an amount divided by it; None for a value that does not exist.

    The usage is rounded to six places, half-even; the quotient of the exact usage is rounded to twelve.

    Raises:
        SumTooLarge: the quotient has more than 26 digits before the point.

    >>> unit_cost(Decimal("3"), Decimal(2**30) / 2, Unit("GiB", 2**30))
    (Decimal('0.500000'), Decimal('6.000000000000'))
    >>> unit_cost(Decimal("3"), Decimal(0), Unit("GiB", 2**30))
    (Decimal('0.000000'), None)
    """
    if usage is None:
        return None, None
    exact = Fraction(usage) / unit.size
    shown = from_units(round(exact * 10**QUANTITY_PLACES), QUANTITY_PLACES)
    return shown, from_units(round(Fraction(amount) / exact * 10**_COST_PLACES)) if exact else None


_BYTES_PER_GIB: Final = 2**30

Per = Literal["gib_in", "gib_out", "gib_stored", "topic"]


@dataclass(frozen=True)
class UnitMeasure:
    """The divisor of costs.

    Attributes:
        unit: the unit of the result.
        dataset: the costs, which are charged to the measured subjects.
        table: the table of measurements.
        measures: the measures that are summed; if empty, each measured subject of a day counts as one.
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

#: The measures by name.
UNIT_MEASURES: Final[Mapping[str, UnitMeasure]] = {
    "gib_in": _OF_IDENTITIES(unit=_GIB, measures=("bytes_in",)),
    "gib_out": _OF_IDENTITIES(unit=_GIB, measures=("bytes_out",)),
    "gib_stored": _OF_TOPICS(unit=Unit("GiB-day", _BYTES_PER_GIB), measures=("topic_retained_bytes",)),
    "topic": _OF_TOPICS(unit=Unit("topic-day", 1), measures=()),
}


class UnitCostSums(ResponseModel):
    """An amount, the usage of the same days, and the cost of a unit."""

    amount: Amount = Field(description="The costs on the days that count.")
    excluded_amount: Amount = Field(description="The costs on days without the measurements; not part of `amount`.")
    usage: Exact | None = Field(
        description="The measured usage in units, rounded to six places; null if nothing was measured."
    )
    unit_cost: Exact | None = Field(
        description="`amount` divided by the exact usage, rounded to twelve places; null without usage."
    )
    days: int = Field(description="The number of UTC days of the amount.")
    days_with_usage: int = Field(description="The number of these days with usage above zero.")


class UnitCostItem(UnitCostSums, Grouped):
    """One group."""


class UnitCostsAnswer(ResponseModel):
    """The cost of a unit of usage, by group and in total."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    per: Per
    unit: str = Field(description="The unit of the usage.", examples=["GiB"])
    covers: str = Field(description="What the amount covers, in words.")
    measures: list[str] = Field(
        description="The measures that are summed; empty if measured topics are counted.",
        examples=[["bytes_in"]],
    )
    total: UnitCostSums
    items: list[UnitCostItem] = Field(description="The groups with the largest amounts, the largest first.")
    groups: int = Field(description="The number of all groups.")
    missing_days: list[date] = Field(description="UTC days whose costs were left out because nothing was measured.")
    names: dict[str, dict[str, str]] = Field(
        description="The display names of ids, by column.", examples=[{"identity_id": {"sa-123abc": "orders-service"}}]
    )
    ignored_filters: list[str] = Field(
        description="Filters that do not apply to topics, such as identities and tags.", examples=[["identity_id"]]
    )


@dataclass(frozen=True)
class UnitCosts:
    """The groups with the largest amounts (``groups`` is the number of all), the total, and the days whose costs were
    left out."""

    items: tuple[UnitCostItem, ...]
    groups: int
    total: UnitCostSums
    missing_days: tuple[date, ...]


def unit_costs(
    reader: TenantReader,
    measure: UnitMeasure,
    selection: Selection,
    by: Sequence[str],
    top: int,
    rates: Rates | None = None,
) -> UnitCosts:
    """Return the cost of a unit in the selected rows, by columns of chargebacks or of the measure's dataset.

    The usage is that of the subjects and resources with selected costs, on the days of these costs. If a resource is
    measured in the window but not on a day, its costs on that day are left out; costs of resources that are never
    measured count on days with any measurements. Usage counts once in each group and once in the total.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: the costs cannot be filtered or grouped by these columns.
    """
    named_keys = (("who", ByColumn(measure.who)), ("place", ByColumn(measure.place)))
    columns = [measure.dataset.aliases.get(name, name) for name in by]
    keys: tuple[Key, ...] = (ByDay(), *(key for _, key in named_keys), *keys_of(measure.dataset, columns))
    sums = reader.sums(Sums(measure.dataset, selection, keys, rates=rates))
    usage = _usage(reader, measure, selection)
    groups = [f"key{number}" for number in range(len(by))]
    joined = _joined(sums, usage, [*(name for name, _ in named_keys), *groups])
    found = _sums(sums, (joined, usage), groups)
    items = tuple(
        UnitCostItem(dimensions=dict(zip(by, row, strict=False)), **_per_unit(row[len(by) :], measure.unit))
        for row in found[:top]
    )
    (whole,) = _sums(sums, (joined, usage), []) or [(Decimal(0), Decimal(0), None, 0, 0)]
    missing = reader.cursor.rows(f"SELECT DISTINCT date FROM {joined} WHERE NOT counts ORDER BY date")
    total = UnitCostSums(**_per_unit(whole, measure.unit))
    return UnitCosts(items, len(found), total, tuple(day for (day,) in missing))


def unit_costs_answer(
    tenant: TenantView,
    reader: TenantReader,
    per: Per,
    period: CalendarPeriod,
    selection: Selection,
    by: Sequence[str],
    top: int,
    conversion: Conversion | None,
) -> UnitCostsAnswer:
    """Return the cost of a unit in the selected chargebacks or in those of their topics, see :func:`unit_costs`."""
    measure, of_whom, ignored = UNIT_MEASURES[per], "identities", list[str]()
    if measure.dataset is TOPIC_ATTRIBUTIONS:
        of_whom, (selection, ignored) = "topics", of_topics(selection)
    found = unit_costs(reader, measure, selection, by, top, None if conversion is None else conversion.rates)
    with tenant.store.control.read() as connection:
        names = display_names(connection, by, [item.dimensions for item in found.items])
    return UnitCostsAnswer(
        start_date=period.start,
        end_date=period.end,
        **currency_of(tenant.currency, conversion),
        per=per,
        unit=measure.unit.name,
        covers=f"all selected costs of {of_whom}, of every product; filter by `product_type` for the costs of a single "
        "one",
        measures=list(measure.measures),
        total=found.total,
        items=list(found.items),
        groups=found.groups,
        missing_days=list(found.missing_days),
        names=names,
        ignored_filters=ignored,
    )


def _usage(reader: TenantReader, measure: UnitMeasure, selection: Selection) -> str:
    """Make the table of the measurements by UTC day, subject and resource; return its name."""
    files = reader.snapshot(measure.table).within(selection.window.days())
    amount = "sum(value)" if measure.measures else "1::DECIMAL(38, 6)"
    wanted = "measure IN (SELECT unnest($measures::VARCHAR[]))" if measure.measures else "TRUE"
    rows = f"SELECT date, subject AS who, resource_id AS place, {amount} AS used FROM {SOURCE} WHERE {wanted}"
    nothing = "SELECT NULL::DATE AS date, '' AS who, '' AS place, 0::DECIMAL(38, 6) AS used WHERE FALSE"
    parameters: dict[str, object] = {"files": files} if files else {}
    if files and measure.measures:
        parameters["measures"] = list(measure.measures)
    sql = f"{rows} GROUP BY date, subject, resource_id" if files else nothing
    table = reader.cursor.new_name("unit_usage")
    reader.cursor.run(f"CREATE TEMP TABLE {table} AS {sql}", parameters)
    return table


def _joined(sums: SumRelation, usage: str, names: Sequence[str]) -> str:
    """Make the table of the costs, whose columns get ``names``, and of whether they count; return its name."""
    columns = {name: f"d{number}" for number, name in enumerate(names)}
    amounts = {"total": "total", f"total{FINE}": f"total{FINE}" if sums.is_fine else "0::HUGEINT"}
    return sums.table(
        "unit_rows",
        f"""SELECT costs.*, CASE WHEN places.place IS NULL THEN days.date IS NOT NULL
                                 ELSE measured.place IS NOT NULL END AS counts
            FROM (SELECT date, {named(columns | amounts)} FROM sums) AS costs
            LEFT JOIN (SELECT DISTINCT place FROM {usage}) AS places ON places.place = costs.place
            LEFT JOIN (SELECT DISTINCT date FROM {usage}) AS days ON days.date = costs.date
            LEFT JOIN (SELECT DISTINCT date, place FROM {usage}) AS measured
                ON measured.date = costs.date AND measured.place = costs.place""",
    )


def _sums(sums: SumRelation, tables: tuple[str, str], keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the sums of each group, or of everything, largest first; ``tables`` are those of costs and usage."""
    unit_rows, unit_usage = tables
    names = "".join(f"{key}, " for key in keys)
    same = " AND ".join(f"amounts.{key} IS NOT DISTINCT FROM used.{key}" for key in keys) or "TRUE"
    return sums.cursor.rows(
        f"""WITH amounts AS (
                SELECT {names}{sums.total_or_zero(where="counts")} AS amount,
                       {sums.total_or_zero(where="NOT counts")} AS excluded,
                       count(DISTINCT date) FILTER (counts) AS days
                FROM {unit_rows} {"GROUP BY ALL" if keys else ""}),
            used AS (
                SELECT {names}sum(used) AS used, count(DISTINCT date) FILTER (used > 0) AS days_with_usage
                FROM (SELECT DISTINCT {names}date, who, place FROM {unit_rows} WHERE counts)
                JOIN {unit_usage} USING (date, who, place) {"GROUP BY ALL" if keys else ""})
            SELECT {"".join(f"amounts.{key}, " for key in keys)}amount, excluded, used, days,
                   coalesce(days_with_usage, 0)
            FROM amounts LEFT JOIN used ON {same}
            ORDER BY {", ".join(["amount DESC", *(f"amounts.{key} NULLS FIRST" for key in keys)])}"""
    )


def _per_unit(sums: Sequence[Any], unit: Unit) -> dict[str, Any]:
    """Return the fields of :class:`UnitCostSums`."""
    amount, excluded, used, days, with_usage = sums
    usage, cost = unit_cost(amount, used, unit)
    return {
        "amount": amount,
        "excluded_amount": excluded,
        "usage": usage,
        "unit_cost": cost,
        "days": days,
        "days_with_usage": with_usage,
    }
