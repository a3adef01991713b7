"""What the graph of an organisation is made of: costs by environment, resource and payer, and those of topics."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chargeback.model.days import InstantRange
from chargeback.model.money import to_shared_units
from chargeback.store.queries.cost_sums import sum_selected, sum_where
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS
from chargeback.store.queries.partials import Addends
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
    windows = [selection.window, *([] if previous is None else [previous])]
    sum_selected(reader, selection, windows, ("environment_id", "resource_id", "identity_id"))
    rows = reader.cursor.rows(
        f"""SELECT d0, d1, d2, {sum_where("period = 0")}, {sum_where("period = 1")},
                   bool_or(period = 0), bool_or(period = 1)
            FROM selected GROUP BY ALL"""
    )
    return [
        PlacedCost(
            environment, resource, identity, (to_shared_units(now), to_shared_units(before)), (is_now, was_before)
        )
        for environment, resource, identity, now, before, is_now, was_before in rows
    ]


def topic_costs_by_cluster(
    reader: TenantReader, selection: Selection, previous: InstantRange | None
) -> list[PlacedCost]:
    """Return the selected costs of topics by environment, cluster and topic.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: topics cannot be filtered so.
    """
    found: dict[tuple[str | None, str, str], list[int | None]] = {}
    columns = "env_id, cluster_resource_id, topic_name"
    for period, window in enumerate([selection.window, *([] if previous is None else [previous])]):
        of_period = replace(selection, window=window)
        if reader.days_of(TOPIC_ATTRIBUTIONS, of_period) is None:
            continue

        def _sum(source: Addends) -> list[tuple[str | None, str, str, int]]:
            rows = reader.cursor.rows(
                f"""SELECT {columns}, {source.amount()} FROM {source.relation}
                    WHERE {source.condition.sql} GROUP BY ALL""",
                source.condition.parameters,
            )
            return [(row[0], row[1], row[2], to_shared_units(row[3])) for row in rows]

        for environment, cluster, topic, units in reader.add_up(TOPIC_ATTRIBUTIONS, of_period, columns, _sum):
            found.setdefault((environment, cluster, topic), [None, None])[period] = units
    return [
        PlacedCost(environment, cluster, topic, (first or 0, second or 0), (first is not None, second is not None))
        for (environment, cluster, topic), (first, second) in found.items()
    ]
