"""Topic rows and their sums."""

from typing import ClassVar, Literal

from pydantic import Field

from chargeback.api.parameters import DateRangeParameters, TagKey, Text
from chargeback.api.schemas.common import Decimal, Instant, ResponseModel
from chargeback.api.schemas.datasets import AggregateParameters, DatasetQuery, groups_of
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.selection import Selection

AttributionMethod = Literal["bytes_ratio", "retained_bytes_ratio", "even_split", "ATTRIBUTION_FAILED"]


class TopicFilters(DatasetQuery):
    """The filters of topic rows."""

    dataset: ClassVar[Dataset] = TOPIC_ATTRIBUTIONS

    cluster_resource_id: Text | None = Field(default=None, description="Only topics of this cluster.")
    topic_name: Text | None = Field(default=None, description="Only topics of this name.")
    product_type: Text | None = Field(default=None, description="Only this product type.")


class TopicQuery(TopicFilters):
    """Parameters of the list of topic rows."""

    attribution_method: AttributionMethod | None = Field(
        default=None, description="Only rows attributed by this method."
    )


class TopicAggregateQuery(TopicFilters, AggregateParameters):
    """Parameters of the aggregation."""

    group_by: list[str] = groups_of(TOPIC_ATTRIBUTIONS, "topic_name")
    tags: dict[TagKey, list[Text]] = Field(default_factory=dict)


class TopicExportRequest(DateRangeParameters):
    """Which days are exported; all fields have defaults."""

    def selection(self, lookback_days: int) -> Selection:
        """Return the selection of rows."""
        return Selection(self.window(lookback_days))


class TopicRow(ResponseModel):
    """One topic's share of one billing line."""

    dimension_id: int = Field(description="Never changes, even after a recalculation; below 2^53.", examples=[1])
    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    timestamp: Instant
    env_id: str | None = Field(description="The environment of the cluster; null if unknown.", examples=["env-abc12"])
    cluster_resource_id: str = Field(examples=["lkc-abc123"])
    topic_name: str = Field(
        description="`__UNATTRIBUTED__` stands for all topics if none is known or the metrics are unavailable.",
        examples=["orders"],
    )
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NETWORK_WRITE"])
    attribution_method: AttributionMethod
    amount: Decimal


class TopicBucket(ResponseModel):
    """The sum of one group in one unit of time."""

    dimensions: dict[str, str | None] = Field(examples=[{"topic_name": "orders"}])
    time_bucket: str = Field(
        description="`YYYY-MM-DD` (the day, the week's Monday, the month's 1st), or `YYYY-MM-DDTHH:00:00±hh:mm`.",
        examples=["2026-01-31"],
    )
    total_amount: Decimal
    row_count: int


class TopicAggregateAnswer(ResponseModel):
    """Sums by group and time. The totals cover everything, also buckets left out for being too many."""

    buckets: list[TopicBucket]
    total_amount: Decimal
    total_rows: int
