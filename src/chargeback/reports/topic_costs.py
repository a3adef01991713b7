"""The costs of topics in a period, compared with another one, and their traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final

from pydantic import Field

from chargeback.model.currency import Conversion, Rates
from chargeback.model.days import InstantRange
from chargeback.model.topics import UNATTRIBUTED
from chargeback.reports.answers import CONVERSION, Amount, ConversionItem, Exact, ResponseModel, currency_of
from chargeback.reports.periods import Comparison
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import RESOURCES, Named, names_of
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE
from chargeback.store.queries.costs import periods_of
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.sql_format import sum_exact

#: The measures of the traffic of a topic.
BYTES_IN: Final = "topic_bytes_in"
BYTES_OUT: Final = "topic_bytes_out"

_NO_BYTES: Final = "0::DECIMAL(38, 6)"


class TopicCostItem(ResponseModel):
    """One topic."""

    cluster_resource_id: str = Field(examples=["lkc-abc123"])
    cluster_name: str | None = Field(examples=["prod"])
    topic_name: str = Field(examples=["orders"])
    amount: Amount
    previous: Amount | None


class TopicSummaryItem(TopicCostItem):
    """One topic, and its traffic."""

    bytes_in: Exact | None = Field(description="Bytes written to it; null if this was not measured.")
    bytes_out: Exact | None = Field(description="Bytes read from it; null if this was not measured.")
    zombie: bool = Field(description="Whether it has costs although no traffic was measured.")


class OtherTopics(ResponseModel):
    """The sum of all topics that are not named."""

    count: int
    amount: Amount
    previous: Amount | None


class CostTopics(ResponseModel):
    """The topics with the largest cost. Topics have no identities: filters by these, and by tags, are ignored."""

    total: Amount
    # Items may be of a subclass; only these fields are written.
    items: list[TopicCostItem]
    other: OtherTopics | None
    ignored_filters: list[str] = Field(examples=[["identity_id"]])


class TopicsSummary(ResponseModel):
    """The topics with the largest cost, and the sum of the others."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total: Amount
    items: list[TopicSummaryItem]
    other: OtherTopics | None
    ignored_filters: list[str] = Field(
        description="Filters that do not apply to topics, such as identities and tags.", examples=[["identity_id"]]
    )


@dataclass(frozen=True)
class TopicCosts:
    """The topics with the largest cost, without the names of their clusters, and the sum of the others."""

    total: Decimal
    items: tuple[TopicSummaryItem, ...]
    other: OtherTopics | None


def of_topics(selection: Selection) -> tuple[Selection, list[str]]:
    """Return a selection of chargebacks as one of topics, and the names of the filters that do not apply to topics."""
    kept: list[ColumnFilter] = []
    ignored: list[str] = []
    for each in selection.columns:
        column = TOPIC_ATTRIBUTIONS.filter_column(each.column)
        if column is None:
            ignored.append(each.column)
        else:
            kept.append(replace(each, column=column))
    ignored += [f"tag:{tag.key}" for tag in selection.tags]
    return replace(selection, columns=tuple(kept), tags=()), list(dict.fromkeys(ignored))


def topic_costs(
    reader: TenantReader,
    selection: Selection,
    previous: InstantRange | None,
    top: int | None,
    *,
    traffic: bool,
    rates: Rates | None = None,
) -> TopicCosts:
    """Return the costs of topics, with the names of the ``top`` largest (None: all); with ``traffic`` also the traffic
    of these; with ``rates`` in another currency.

    A topic without traffic has no series in the metrics, so its bytes are zero if any traffic of its cluster was
    measured, and None otherwise.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: topics cannot be filtered by these columns.
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
    others = "FALSE" if top is None else f"rank > {top}"
    amounts = [
        sum_exact(name, sums.question.places, where, is_fine=sums.is_fine)
        for name, where in (("amount", others), ("previous", others), ("amount", "TRUE"))
    ]
    ((count, amount, gone, whole),) = reader.cursor.rows(
        f"SELECT count(*) FILTER ({others}), {', '.join(amounts)} FROM {ranked}"
    )
    measured = _traffic(reader, selection.window, named) if traffic else {}
    items = []
    for cluster, topic, cost, before in rows:
        into, out = measured.get((cluster, topic), (None, None))
        items.append(
            TopicSummaryItem(
                cluster_resource_id=cluster,
                cluster_name=None,
                topic_name=topic,
                amount=cost,
                previous=None if previous is None else before,
                bytes_in=into,
                bytes_out=out,
                zombie=cost > 0 and (into, out) != (None, None) and not into and not out,
            )
        )
    other = OtherTopics(count=count, amount=amount, previous=None if previous is None else gone) if count else None
    return TopicCosts(whole or Decimal(0), tuple(items), other)


def named_topics(topics: TopicCosts, clusters: Mapping[str, Named]) -> list[TopicSummaryItem]:
    """Return the topics with the names of those of their clusters that have one."""
    names = {cluster: each.name for cluster, each in clusters.items()}
    return [item.model_copy(update={"cluster_name": names.get(item.cluster_resource_id)}) for item in topics.items]


def topics_summary(
    tenant: TenantView, reader: TenantReader, comparison: Comparison, top: int | None, conversion: Conversion | None
) -> TopicsSummary:
    """Return the costs of topics and their traffic, see :func:`topic_costs`."""
    selection, ignored = of_topics(comparison.selection)
    rates = None if conversion is None else conversion.rates
    found = topic_costs(reader, selection, comparison.previous, top, traffic=True, rates=rates)
    with tenant.store.control.read() as connection:
        clusters = names_of(connection, RESOURCES, {item.cluster_resource_id for item in found.items})
    return TopicsSummary(
        start_date=comparison.period.start,
        end_date=comparison.period.end,
        **currency_of(tenant.currency, conversion),
        total=found.total,
        items=named_topics(found, clusters),
        other=found.other,
        ignored_filters=ignored,
    )


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
