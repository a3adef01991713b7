"""The flow of costs through columns, and the costs of the graph of an organisation.

Costs flow, for instance, from an environment to its resources, and from these to the identities that pay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate
from typing import Final

from pydantic import Field

from chargeback.model.currency import Conversion, Rates
from chargeback.model.days import InstantRange
from chargeback.model.money import to_shared_units
from chargeback.reports.answers import CONVERSION, Amount, ConversionItem, ResponseModel, currency_of
from chargeback.reports.names import NAMED_COLUMNS, NamesByKind, names_in
from chargeback.reports.periods import Comparison
from chargeback.reports.tenant_view import TenantView
from chargeback.store.queries.costs import Breakdown, Ranked, periods_of
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.partials import ROW_COUNT
from chargeback.store.queries.question import SumRelation, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

_SUMS: Final = ("total", "used", ROW_COUNT)


class FlowNode(ResponseModel):
    """One value of a column, or all that are not named (`other` is their number)."""

    column: int
    by: str = Field(examples=["identity_id"])
    value: str | None
    name: str | None
    amount: Amount
    previous: Amount | None
    other: int | None


class FlowLink(ResponseModel):
    """The costs that flow from one node to another; both are positions in the list of nodes."""

    source: int
    target: int
    amount: Amount
    previous: Amount | None


class FlowAnswer(ResponseModel):
    """Nodes and the costs that flow between them. Each column sums to the total."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    by: list[str]
    nodes: list[FlowNode]
    links: list[FlowLink]


@dataclass(frozen=True)
class Flow:
    """The values of each column, and the costs that flow between those of neighbouring columns."""

    columns: tuple[Breakdown, ...]
    links: tuple[FlowLink, ...]


def flow(
    reader: TenantReader,
    selection: Selection,
    previous: InstantRange | None,
    by: Sequence[str],
    tops: Sequence[int],
    rates: Rates | None = None,
) -> Flow:
    """Return how the selected costs flow through the columns ``by``, each with its ``tops`` largest values by
    name; with ``rates`` in another currency.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped by these columns.
    """
    question = Sums(CHARGEBACKS, selection, keys_of(CHARGEBACKS, by), _SUMS, rates, periods_of(selection, previous))
    sums = reader.sums(question)
    ranked = [Ranked(sums, f"d{number}", name, tops[number]) for number, name in enumerate(by)]
    columns = tuple(each.breakdown() for each in ranked)
    firsts = [0, *accumulate(len(each.items) + (each.other is not None) for each in columns)]
    return Flow(columns, tuple(link for number in range(len(by) - 1) for link in _links(sums, number, ranked, firsts)))


def _links(sums: SumRelation, number: int, ranked: Sequence[Ranked], firsts: Sequence[int]) -> Iterator[FlowLink]:
    """Yield the links from a column to the next one; ``firsts`` are the positions of the first node of each column. The
    values that are not named share the last position of their column."""
    source, target = ranked[number], ranked[number + 1]
    rows = sums.rows(
        f"""SELECT {firsts[number]} + least(source.rank - 1, {source.top}) AS source_place,
                   {firsts[number + 1]} + least(target.rank - 1, {target.top}) AS target_place,
                   {sums.total_or_zero(where="period = 0")} AS amount,
                   {sums.total_or_zero(where="period = 1")} AS previous
            FROM sums
            JOIN {source.table} AS source ON d{number} IS NOT DISTINCT FROM source.value
            JOIN {target.table} AS target ON d{number + 1} IS NOT DISTINCT FROM target.value
            GROUP BY ALL ORDER BY ALL"""
    )
    has_previous = len(sums.question.periods) > 1
    for source_place, target_place, amount, previous in rows:
        before = previous if has_previous else None
        yield FlowLink(source=source_place, target=target_place, amount=amount, previous=before)


def flow_answer(
    tenant: TenantView,
    reader: TenantReader,
    comparison: Comparison,
    by: Sequence[str],
    tops: Sequence[int],
    conversion: Conversion | None,
) -> FlowAnswer:
    """Return how costs flow, with names, see :func:`flow`."""
    found = flow(
        reader, comparison.selection, comparison.previous, by, tops, None if conversion is None else conversion.rates
    )
    with tenant.store.control.read() as connection:
        names = names_in(connection, found.columns)
    return FlowAnswer(
        start_date=comparison.period.start,
        end_date=comparison.period.end,
        **currency_of(tenant.currency, conversion),
        by=by,
        nodes=[
            node for number, column in enumerate(found.columns) for node in _nodes(number, column, names, comparison)
        ],
        links=found.links,
    )


def _nodes(number: int, column: Breakdown, names: NamesByKind, comparison: Comparison) -> Iterator[FlowNode]:
    kind = NAMED_COLUMNS.get(column.by)
    rows: list[tuple[str | None, Decimal, Decimal, int | None]]
    rows = [(each.value, each.amount, each.previous, None) for each in column.items]
    if column.other is not None:
        count, amount, previous = column.other
        rows.append((None, amount, previous, count))
    for value, amount, previous, other in rows:
        known = None if kind is None or value is None else names[kind].get(value)
        yield FlowNode(
            column=number,
            by=column.by,
            value=value,
            name=None if known is None else known.name,
            amount=amount,
            previous=None if comparison.compared is None else previous,
            other=other,
        )


@dataclass(frozen=True, slots=True)
class PlacedCost:
    """A sum of rows of an environment (None: of no environment), a resource, and an identity or a topic.

    ``units`` are the sums of the selected period and of the previous one, in 10⁻²⁴; ``is_in`` is whether each of the
    two has rows of it.
    """

    environment_id: str | None
    resource_id: str
    leaf: str
    units: tuple[int, int]
    is_in: tuple[bool, bool]


def charged_costs(reader: TenantReader, selection: Selection, previous: InstantRange | None) -> list[PlacedCost]:
    """Return the selected charges by environment, resource and identity.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered by these columns.
    """
    return _placed(reader, CHARGEBACKS, ("environment_id", "resource_id", "identity_id"), selection, previous)


def topic_costs_by_cluster(
    reader: TenantReader, selection: Selection, previous: InstantRange | None
) -> list[PlacedCost]:
    """Return the selected costs of topics by environment, cluster and topic.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: topics cannot be filtered by these columns.
    """
    return _placed(reader, TOPIC_ATTRIBUTIONS, ("env_id", "cluster_resource_id", "topic_name"), selection, previous)


def _placed(
    reader: TenantReader, dataset: Dataset, by: Sequence[str], selection: Selection, previous: InstantRange | None
) -> list[PlacedCost]:
    sums = reader.sums(Sums(dataset, selection, keys_of(dataset, by), periods=periods_of(selection, previous)))
    rows = sums.rows(
        f"""SELECT d0, d1, d2, {sums.total_or_zero(where="period = 0")}, {sums.total_or_zero(where="period = 1")},
                   bool_or(period = 0), bool_or(period = 1)
            FROM sums GROUP BY ALL"""
    )
    return [
        PlacedCost(environment, resource, leaf, (to_shared_units(now), to_shared_units(before)), (is_now, was_before))
        for environment, resource, leaf, now, before, is_now, was_before in rows
    ]
