"""Topic rows and their sums."""

from typing import ClassVar, Literal

from pydantic import Field

from chargeback.api.export_files import format_field
from chargeback.api.parameters import DateRangeParameters, OptionalText, Text
from chargeback.api.schemas.common import (
    DIRECT_AMOUNT,
    SHARED_IN,
    SHARED_OUT,
    Amount,
    CategoryPart,
    Decimal,
    Instant,
    Metadata,
    ResponseModel,
)
from chargeback.api.schemas.currency import CONVERSION, ConversionItem
from chargeback.api.schemas.datasets import AggregateParameters, DatasetQuery, Filters, groups_of
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.export import ExportFormat
from chargeback.store.queries.selection import Selection

AttributionMethod = Literal["bytes_ratio", "retained_bytes_ratio", "even_split", "ATTRIBUTION_FAILED"]


class TopicColumns(Filters):
    """The columns by which topic rows are filtered."""

    cluster_resource_id: list[Text] = Field(default=[], description="Only topics of this cluster.")
    topic_name: list[Text] = Field(default=[], description="Only topics of this name.")
    product_type: list[Text] = Field(default=[], description="Only this product type.")
    attribution_method: list[AttributionMethod] = Field(default=[], description="Only rows made this way.")
    env_id: list[OptionalText] = Field(
        default=[], description="Only topics in this environment; empty: where it is unknown."
    )
    product_category: list[Text] = Field(default=[], description="Only this product category.")
    line_id: list[Text] = Field(default=[], description="Only the shares of this billing line.")


class TopicQuery(TopicColumns, DatasetQuery):
    """Parameters of the list of topic rows."""

    dataset: ClassVar[Dataset] = TOPIC_ATTRIBUTIONS

    excluded: TopicColumns = TopicColumns()


class TopicAggregateQuery(TopicQuery, AggregateParameters):
    """Parameters of the aggregation."""

    group_by: list[str] = groups_of(TOPIC_ATTRIBUTIONS, "topic_name")


class TopicExportRequest(DateRangeParameters):
    """Which days are exported, and as what; all fields have defaults."""

    format: ExportFormat = format_field()

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
    categories: dict[str, list[CategoryPart]] | None = Field(
        default=None,
        description="Where the tenant has cost categories: by key, the values to which the row is assigned.",
    )
    metadata: Metadata


class TopicBucket(ResponseModel):
    """The sum of one group in one unit of time."""

    dimensions: dict[str, str | None] = Field(examples=[{"topic_name": "orders"}])
    time_bucket: str = Field(
        description="`YYYY-MM-DD` (the day, the week's Monday, the month's 1st), or `YYYY-MM-DDTHH:00:00±hh:mm`.",
        examples=["2026-01-31"],
    )
    total_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    row_count: int


class TopicAggregateAnswer(ResponseModel):
    """Sums by group and time. The totals cover everything, also buckets left out for being too many."""

    buckets: list[TopicBucket]
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    total_rows: int
