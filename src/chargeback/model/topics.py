"""Topics: the part of a cluster's cost that each of its topics accounts for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fnmatch import fnmatchcase
from typing import Final, Literal

import pyarrow as pa

from chargeback.model.billing import INSTANT, MONEY
from chargeback.model.usage import QUANTITY

# attribution_method
AttributionMethod = Literal["bytes_ratio", "retained_bytes_ratio", "even_split", "ATTRIBUTION_FAILED"]
BYTES_RATIO: Final = "bytes_ratio"
RETAINED_BYTES_RATIO: Final = "retained_bytes_ratio"
EVEN_SPLIT: Final = "even_split"
ATTRIBUTION_FAILED: Final = "ATTRIBUTION_FAILED"

#: Stands for all topics if none is known, or if the metrics are not available.
UNATTRIBUTED: Final = "__UNATTRIBUTED__"

#: The measure of a topic that existed on a day but was not measured; its value is 1.
EXISTED: Final = "topic_existed"

#: The columns that make a dimension, in the order in which they are hashed. If ``env_id`` is null, it counts as empty.
TOPIC_DIMENSION_COLUMNS: Final = (
    "ecosystem",
    "tenant_id",
    "env_id",
    "cluster_resource_id",
    "topic_name",
    "product_category",
    "product_type",
    "attribution_method",
)

#: One row is one topic's share of one billing line; its key is (line_id, topic_name). The share is ``topic_usage`` of
#: ``total_usage``; both are null in an even split.
TOPIC_ATTRIBUTIONS = pa.schema(
    [
        pa.field("date", pa.date32(), nullable=False),
        pa.field("timestamp", INSTANT, nullable=False),
        pa.field("line_id", pa.string(), nullable=False),
        pa.field("dimension_id", pa.int64(), nullable=False),
        pa.field("ecosystem", pa.string(), nullable=False),
        pa.field("tenant_id", pa.string(), nullable=False),
        pa.field("env_id", pa.string()),
        pa.field("cluster_resource_id", pa.string(), nullable=False),
        pa.field("topic_name", pa.string(), nullable=False),
        pa.field("product_category", pa.string(), nullable=False),
        pa.field("product_type", pa.string(), nullable=False),
        pa.field("attribution_method", pa.string(), nullable=False),
        pa.field("amount", MONEY, nullable=False),
        pa.field("topic_usage", QUANTITY),
        pa.field("total_usage", QUANTITY),
    ]
)

#: The order of rows in a day's file and in every list: time first, then ids.
TOPIC_ORDER: Final = ("timestamp", "cluster_resource_id", "topic_name", "product_type", "line_id")

#: The dimension's id in DuckDB's SQL, over columns of these names: below 2⁵³, the same on every machine.
TOPIC_DIMENSION_ID_SQL: Final = (
    "((md5_number(concat_ws(chr(31), "
    + ", ".join(f"coalesce({name}, '')" for name in TOPIC_DIMENSION_COLUMNS)
    + f")) >> 64)::UBIGINT % {2**53 - 1} + 1)::BIGINT"
)


@dataclass(frozen=True, slots=True, order=True)
class TopicMethod:
    """How a line is attributed to the topics of its cluster: by the sum of ``measures``, or evenly (none)."""

    method: str
    measures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The topic overlay's settings of a tenant; its ecosystem makes them from the tenant's settings.

    Attributes:
        methods: product type → how its lines are attributed; lines of other types are not attributed.
        aliases: other spellings of product types → the name used in ``methods``.
        cluster_type: the resource type of clusters; only lines billed to such a resource are attributed.
        topic_type: the resource type of a topic.
        exclude_patterns: patterns of excluded topics, in the style of a shell; case-sensitive.
        spreads_missing: whether the cost of a cluster without measures is split evenly; otherwise its lines are left
            out.
        retention_days: for how many days rows are kept.
    """

    methods: Mapping[str, TopicMethod]
    aliases: Mapping[str, str]
    cluster_type: str
    topic_type: str
    exclude_patterns: tuple[str, ...] = ()
    spreads_missing: bool = True
    retention_days: int = 90

    @property
    def hash(self) -> str:
        """A short text that is the same for plans that attribute alike."""
        what = (sorted(self.methods.items()), sorted(self.aliases.items()), self.exclude_patterns, self.spreads_missing)
        return hashlib.blake2b(repr(what).encode(), digest_size=6).hexdigest()

    def method_of(self, product_type: str) -> TopicMethod | None:
        """Return how lines of a type, as billed, are attributed; None if they are not."""
        return self.methods.get(self.aliases.get(product_type, product_type))

    def excludes(self, topic: str) -> bool:
        """Return whether one of the patterns excludes the topic."""
        return any(fnmatchcase(topic, pattern) for pattern in self.exclude_patterns)

    def oldest_day(self, today: date) -> date:
        """Return the oldest UTC day for which topic rows are kept."""
        return today - timedelta(days=self.retention_days)


def topic_resource_id(cluster_id: str, topic: str) -> str:
    """Return the id of a topic in the inventory.

    >>> topic_resource_id("lkc-1", "orders")
    'lkc-1:topic:orders'
    """
    return f"{cluster_id}:topic:{topic}"


#: The same in DuckDB's SQL, over the columns of topic rows.
TOPIC_RESOURCE_SQL: Final = "concat(cluster_resource_id, ':topic:', topic_name)"
