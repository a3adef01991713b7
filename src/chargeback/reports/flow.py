"""How costs flow through columns, and what the graph of an organisation is made of.

Costs flow from an environment to its resources to those who pay, for instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from chargeback.model.currency import Rates
from chargeback.model.days import InstantRange
from chargeback.model.money import to_shared_units
from chargeback.store.queries.costs import Breakdown, Ranked, periods_of
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.partials import ROW_COUNT
from chargeback.store.queries.question import SumRelation, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

_SUMS: Final = ("total", "used", ROW_COUNT)


@dataclass(frozen=True)
class Link:
    """What flows from a value of one column (``source``, its place among the items; the others share the last place)
    to a value of the next column."""

    column: int
    source: int
    target: int
    amount: Decimal
    previous: Decimal


@dataclass(frozen=True)
class Flow:
    """The values of each column, and what flows between those of neighbouring columns."""

    columns: tuple[Breakdown, ...]
    links: tuple[Link, ...]


def flow(
    reader: TenantReader,
    selection: Selection,
    previous: InstantRange | None,
    by: Sequence[str],
    tops: Sequence[int],
    rates: Rates | None = None,
) -> Flow:
    """Return how the selected costs flow through the columns ``by``, of which ``tops`` values each are named; with
    ``rates`` in another currency.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    question = Sums(CHARGEBACKS, selection, keys_of(CHARGEBACKS, by), _SUMS, rates, periods_of(selection, previous))
    sums = reader.sums(question)
    ranked = [Ranked(sums, f"d{number}", name, tops[number]) for number, name in enumerate(by)]
    links = [link for number in range(len(by) - 1) for link in _links(sums, number, ranked)]
    return Flow(tuple(each.breakdown() for each in ranked), tuple(links))


def _links(sums: SumRelation, number: int, ranked: Sequence[Ranked]) -> list[Link]:
    source, target = ranked[number], ranked[number + 1]
    rows = sums.rows(
        f"""SELECT least(source.rank - 1, {source.top}) AS source_place,
                   least(target.rank - 1, {target.top}) AS target_place,
                   {sums.total_or_zero(where="period = 0")} AS amount,
                   {sums.total_or_zero(where="period = 1")} AS previous
            FROM sums
            JOIN {source.table} AS source ON d{number} IS NOT DISTINCT FROM source.value
            JOIN {target.table} AS target ON d{number + 1} IS NOT DISTINCT FROM target.value
            GROUP BY ALL ORDER BY ALL"""
    )
    return [Link(number, *row) for row in rows]


@dataclass(frozen=True, slots=True)
class PlacedCost:
    """A sum of rows: of an environment (None: of none), a resource, and an identity or a topic.

    ``units`` are the sums of the selected period and of the previous one, in 10⁻²⁴; ``is_in`` tells which of the two
    has rows of it.
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
        ValueError: costs cannot be filtered so.
    """
    return _placed(reader, CHARGEBACKS, ("environment_id", "resource_id", "identity_id"), selection, previous)


def topic_costs_by_cluster(
    reader: TenantReader, selection: Selection, previous: InstantRange | None
) -> list[PlacedCost]:
    """Return the selected costs of topics by environment, cluster and topic.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: topics cannot be filtered so.
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
