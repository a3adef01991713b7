"""What topics cost in a period, beside another one, and what went through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from chargeback.model.currency import Rates
from chargeback.model.days import InstantRange
from chargeback.model.topics import UNATTRIBUTED
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE
from chargeback.store.queries.costs import periods_of
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.sql_format import sum_exact

#: The measures of what went through a topic.
BYTES_IN: Final = "topic_bytes_in"
BYTES_OUT: Final = "topic_bytes_out"

_NO_BYTES: Final = "0::DECIMAL(38, 6)"


@dataclass(frozen=True)
class TopicCost:
    """One topic: its cost in both periods, and its bytes in the first one.

    A topic without traffic has no series in the metrics, so its bytes are zero wherever those of its cluster were
    measured at all; they are None where nothing of the cluster was.
    """

    cluster_id: str
    topic: str
    amount: Decimal
    previous: Decimal
    bytes_in: Decimal | None = None
    bytes_out: Decimal | None = None

    @property
    def is_zombie(self) -> bool:
        """Whether the topic costs something although no traffic was measured."""
        measured = [each for each in (self.bytes_in, self.bytes_out) if each is not None]
        return self.amount > 0 and bool(measured) and not any(measured)


@dataclass(frozen=True)
class TopicCosts:
    """The topics with the largest cost, and the others together (how many, their amount, their previous one)."""

    total: Decimal
    previous: Decimal
    items: tuple[TopicCost, ...]
    other: tuple[int, Decimal, Decimal] | None


def of_topics(selection: Selection) -> tuple[Selection, tuple[str, ...]]:
    """Return a selection of chargebacks as one of topics, and the names of the filters that topics know nothing of."""
    kept: list[ColumnFilter] = []
    ignored: list[str] = []
    for each in selection.columns:
        column = TOPIC_ATTRIBUTIONS.filter_column(each.column)
        if column is None:
            ignored.append(each.column)
        else:
            kept.append(replace(each, column=column))
    ignored += [f"tag:{tag.key}" for tag in selection.tags]
    return replace(selection, columns=tuple(kept), tags=()), tuple(dict.fromkeys(ignored))


def topic_costs(
    reader: TenantReader,
    selection: Selection,
    previous: InstantRange | None,
    top: int | None,
    *,
    traffic: bool,
    rates: Rates | None = None,
) -> TopicCosts:
    """Return the costs of topics, of which ``top`` are named, or all; with ``traffic`` also what went through these;
    with ``rates`` in another currency.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: topics cannot be filtered so.
    """
    by = keys_of(TOPIC_ATTRIBUTIONS, ("cluster_resource_id", "topic_name"))
    periods = periods_of(selection, previous)
    sums = reader.sums(Sums(TOPIC_ATTRIBUTIONS, selection, by, rates=rates, periods=periods))
    ranked = sums.table(
        "ranked_topics",
        f"""SELECT *, row_number() OVER (ORDER BY amount DESC, previous DESC, cluster, topic) AS rank FROM (
                SELECT d0 AS cluster, d1 AS topic,
                       {sums.total_or_zero(where="period = 0")} AS amount,
                       {sums.total_or_zero(where="period = 1")} AS previous
                FROM sums GROUP BY ALL)""",
    )
    named = f"SELECT * FROM {ranked} WHERE {'TRUE' if top is None else f'rank <= {top}'}"
    rows = reader.cursor.rows(f"SELECT cluster, topic, amount, previous FROM ({named}) ORDER BY rank")
    amounts = ", ".join(sum_exact(name, sums.question.places) for name in ("amount", "previous"))
    others = "FALSE" if top is None else f"rank > {top}"
    ((count, amount, gone),) = reader.cursor.rows(f"SELECT count(*), {amounts} FROM {ranked} WHERE {others}")
    ((whole, whole_before),) = reader.cursor.rows(f"SELECT {amounts} FROM {ranked}")
    measured = _traffic(reader, selection.window, named) if traffic else {}
    items = tuple(
        TopicCost(cluster, topic, cost, before, *measured.get((cluster, topic), (None, None)))
        for cluster, topic, cost, before in rows
    )
    return TopicCosts(whole or Decimal(0), whole_before or Decimal(0), items, (count, amount, gone) if count else None)


def _traffic(
    reader: TenantReader, window: InstantRange, topics: str
) -> Mapping[tuple[str, str], tuple[Decimal | None, Decimal | None]]:
    """Return the bytes in and out of some topics (SQL), of the UTC days that the window touches."""
    files = reader.snapshot(TOPIC_USAGE_TABLE).within(window.days())
    if not files:
        return {}
    rows = reader.cursor.rows(
        f"""WITH named AS (SELECT cluster, topic FROM ({topics}) WHERE topic <> $all_topics),
                 measured AS (
                     SELECT resource_id, subject, measure, value FROM {SOURCE}
                     WHERE measure IN ($bytes_in, $bytes_out) AND resource_id IN (SELECT cluster FROM named)),
                 clusters AS (
                     SELECT resource_id,
                            bool_or(measure = $bytes_in) AS has_in, bool_or(measure = $bytes_out) AS has_out
                     FROM measured GROUP BY resource_id)
            SELECT cluster, topic,
                   CASE WHEN any_value(has_in)
                        THEN coalesce(sum(value) FILTER (measure = $bytes_in), {_NO_BYTES}) END,
                   CASE WHEN any_value(has_out)
                        THEN coalesce(sum(value) FILTER (measure = $bytes_out), {_NO_BYTES}) END
            FROM named JOIN clusters ON clusters.resource_id = cluster
            LEFT JOIN measured ON measured.resource_id = cluster AND subject = topic
            GROUP BY cluster, topic""",
        {"files": files, "bytes_in": BYTES_IN, "bytes_out": BYTES_OUT, "all_topics": UNATTRIBUTED},
    )
    return {(cluster, topic): (into, out) for cluster, topic, into, out in rows}
