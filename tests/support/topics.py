"""Small days of topic rows for tests, written to the real tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from chargeback.model.topics import TOPIC_ATTRIBUTIONS, TOPIC_ORDER
from chargeback.store.facts.tables import TOPICS_TABLE, FactTables
from tests.support.facts import ECOSYSTEM, TENANT_ID, replace_day


@dataclass(frozen=True)
class TopicShare:
    """One topic row; amounts are given as texts."""

    day: date
    topic: str
    amount: str
    cluster: str = "lkc-1"
    product: str = "KAFKA_NETWORK_WRITE"
    method: str = "bytes_ratio"
    environment: str | None = "env-1"
    hour: int = 0
    line: str = "line-1"

    def row(self) -> dict[str, Any]:
        """Return the row in the table's form; the id of its dimension only distinguishes rows."""
        return {
            "date": self.day,
            "timestamp": datetime(self.day.year, self.day.month, self.day.day, self.hour, tzinfo=UTC),
            "line_id": self.line,
            "dimension_id": 1 + sum(map(ord, self.cluster + self.topic + self.product)),
            "ecosystem": ECOSYSTEM,
            "tenant_id": TENANT_ID,
            "env_id": self.environment,
            "cluster_resource_id": self.cluster,
            "topic_name": self.topic,
            "product_category": "KAFKA",
            "product_type": self.product,
            "attribution_method": self.method,
            "amount": Decimal(self.amount),
            "topic_usage": None,
            "total_usage": None,
        }


def write_topic_shares(facts: FactTables, shares: Iterable[TopicShare]) -> None:
    """Replace the days of ``shares``."""
    by_day: dict[date, list[TopicShare]] = defaultdict(list)
    for share in shares:
        by_day[share.day].append(share)
    for day, of_day in by_day.items():
        rows = sorted((share.row() for share in of_day), key=lambda row: tuple(row[name] for name in TOPIC_ORDER))
        replace_day(facts, TOPICS_TABLE, day, pa.Table.from_pylist(rows, schema=TOPIC_ATTRIBUTIONS))
