"""The topic overlay: a day of many clusters and topics, attributed and persisted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb

from benchmarks.measure import Figure
from benchmarks.shapes import FIRST_DAY
from benchmarks.storage import replace_tables, tables_in
from chargeback.allocation.topics import TopicAttributor
from chargeback.ecosystems.confluent_cloud import ConfluentCloudSettings, ecosystem
from chargeback.model.billing import BillingLine, billing_table
from chargeback.model.days import start_of_day
from chargeback.model.money import to_amount
from chargeback.model.topics import TopicPlan
from chargeback.model.usage import USAGE
from chargeback.store.facts.tables import TOPICS_TABLE

_TOPICS_PER_CLUSTER: Final = 2000
_TYPES: Final = (
    *("KAFKA_NETWORK_WRITE", "KAFKA_NETWORK_READ", "KAFKA_NUM_CKUS", "KAFKA_STORAGE", "KAFKA_PARTITION", "KAFKA_BASE"),
    "KAFKA_REST_PRODUCE",
)


def overlay(scratch: Path, *, clusters: int, days: int) -> Iterator[Figure]:
    """Measure equal days of ``clusters`` × 2,000 topics × 7 product types."""
    lines, evidence = _lines(clusters), topic_evidence(FIRST_DAY, clusters, _TOPICS_PER_CLUSTER)
    facts = tables_in(scratch / f"topics-{clusters}")
    attributor = TopicAttributor(topic_plan())
    attributing, writing, rows = [], [], 0
    for _ in range(days):
        start = time.perf_counter()
        attributed = attributor.attribute(FIRST_DAY, lines, evidence)
        middle = time.perf_counter()
        replace_tables(facts, FIRST_DAY, {TOPICS_TABLE: attributed})
        writing.append(time.perf_counter() - middle)
        attributing.append(middle - start)
        rows = attributed.num_rows
    attributor.close()
    group = f"topic overlay, {rows:,} rows a day"
    yield Figure(group, f"attribute {clusters} clusters × {_TOPICS_PER_CLUSTER:,} topics", min(attributing), "s")
    yield Figure(group, "write the rows", min(writing), "s")


def topic_plan() -> TopicPlan:
    """Return the plan of the overlay, with one product type more than by default."""
    written: dict[str, Any] = {
        "ccloud_api": {"key": "k", "secret": "s"},
        "metrics": {"url": "http://127.0.0.1:9090"},
        "topic_attribution": {"enabled": True, "cost_mapping_overrides": {"KAFKA_REST_PRODUCE": "bytes_ratio"}},
    }
    plan = ecosystem.topic_plan(ConfluentCloudSettings.model_validate(written))
    if plan is None:
        raise RuntimeError("the overlay of the benchmark's own settings is not usable")
    return plan


def _lines(clusters: int) -> Any:
    lines = [
        BillingLine(
            day=FIRST_DAY,
            timestamp=start_of_day(FIRST_DAY),
            resource_id=f"lkc-{number}",
            product_category="KAFKA",
            product_type=product_type,
            total_cost=to_amount(Decimal(1000 + number) / 7),
            currency="USD",
        )
        for number in range(clusters)
        for product_type in _TYPES
    ]
    return billing_table(lines, ecosystem="confluent_cloud", tenant_id="bench")


def topic_evidence(day: date, clusters: int, topics: int) -> Any:
    """Return every measure of every topic of a day, of very different sizes, in schema USAGE."""
    with duckdb.connect() as database:
        made = database.sql(
            """
            SELECT $day::DATE AS date, measure, 'lkc-' || cluster AS resource_id, 'events-' || topic AS subject,
                   (1 + hash(measure, cluster, topic) % 1000000000 // (1 + topic % 97))::DECIMAL(38, 6) AS value
            FROM range($clusters::BIGINT) AS c(cluster), range($topics::BIGINT) AS t(topic),
                 (VALUES ('topic_bytes_in'), ('topic_bytes_out'), ('topic_retained_bytes')) AS m(measure)
            """,
            params={"day": day, "clusters": clusters, "topics": topics},
        )
        return made.to_arrow_table().cast(USAGE)
