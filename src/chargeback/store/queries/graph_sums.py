"""What the graph of an organisation is made of: costs by environment, resource and payer, and those of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chargeback.model.days import InstantRange
from chargeback.model.money import to_shared_units
from chargeback.store.queries.costs import periods_of
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection


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
