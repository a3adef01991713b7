"""Topic rows and their sums."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from chargeback.api.parameters import TAG_PARAMETER, Common, Dates, TagKey, Text
from chargeback.api.schemas.chargebacks import MOST_GROUPS, is_tag
from chargeback.api.schemas.common import Answer, Decimal, Instant
from chargeback.store.queries.filters import TagFilter
from chargeback.store.queries.topics import TOPIC_GROUP_COLUMNS, TopicFilters

AttributionMethod = Literal["bytes_ratio", "retained_bytes_ratio", "even_split", "ATTRIBUTION_FAILED"]


class TopicQuery(Common):
    """Parameters of the list of topic rows."""

    cluster_resource_id: Text | None = Field(default=None, description="Only topics of this cluster.")
    topic_name: Text | None = Field(default=None, description="Only topics of this name.")
    product_type: Text | None = Field(default=None, description="Only this product type.")
    attribution_method: AttributionMethod | None = Field(default=None, description="Only rows made this way.")

    def filters(self) -> TopicFilters:
        """The filters as the store knows them."""
        return TopicFilters(self.cluster_resource_id, self.topic_name, self.product_type, self.attribution_method)


class TopicAggregateQuery(Common):
    """Parameters of the aggregation."""

    takes_tags: ClassVar[bool] = True

    group_by: list[str] = Field(
        default=["topic_name"],
        max_length=MOST_GROUPS,
        description=f"Columns to group by, repeatable: {', '.join(TOPIC_GROUP_COLUMNS)}, or `tag:<key>`; "
        f"at most {MOST_GROUPS}.",
        json_schema_extra={
            "items": {
                "anyOf": [
                    {"type": "string", "enum": list(TOPIC_GROUP_COLUMNS)},
                    {"type": "string", "pattern": TAG_PARAMETER},
                ]
            }
        },
    )
    time_bucket: Literal["hour", "day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks begin on Monday."
    )
    cluster_resource_id: Text | None = Field(default=None, description="Only topics of this cluster.")
    topic_name: Text | None = Field(default=None, description="Only topics of this name.")
    product_type: Text | None = Field(default=None, description="Only this product type.")
    tags: dict[TagKey, list[Text]] = Field(default_factory=dict)

    @field_validator("group_by")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        """Every column is one of the list, or a tag; none twice."""
        for name in value:
            if name not in TOPIC_GROUP_COLUMNS and not is_tag(name):
                raise ValueError(f"{name[:80]!r} should be one of {', '.join(TOPIC_GROUP_COLUMNS)}, or tag:<key>")
        return list(dict.fromkeys(value))

    def filters(self) -> TopicFilters:
        """The filters as the store knows them."""
        tags = tuple(
            TagFilter(key, frozenset(part for value in values for part in value.split(",")))
            for key, values in self.tags.items()
        )
        return TopicFilters(self.cluster_resource_id, self.topic_name, self.product_type, tags=tags)


class TopicExportRequest(Dates):
    """Which days are exported; all fields have defaults."""


class TopicRow(Answer):
    """One topic's share of one billing line."""

    dimension_id: int = Field(description="The same for ever, also after a recalculation; below 2^53.", examples=[1])
    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    timestamp: Instant
    env_id: str | None = Field(
        description="The environment of the cluster; null where unknown.", examples=["env-abc12"]
    )
    cluster_resource_id: str = Field(examples=["lkc-abc123"])
    topic_name: str = Field(
        description="`__UNATTRIBUTED__` stands for all topics where none is known, or the metrics could not be had.",
        examples=["orders"],
    )
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NETWORK_WRITE"])
    attribution_method: AttributionMethod
    amount: Decimal


class TopicBucket(Answer):
    """The sum of one group in one unit of time."""

    dimensions: dict[str, str | None] = Field(examples=[{"topic_name": "orders"}])
    time_bucket: str = Field(
        description="`YYYY-MM-DD` (the day, the week's Monday, the month's 1st), or `YYYY-MM-DDTHH:00:00±hh:mm`.",
        examples=["2026-01-31"],
    )
    total_amount: Decimal
    row_count: int


class TopicAggregateAnswer(Answer):
    """Sums by group and time. The totals cover everything, also buckets left out for being too many."""

    buckets: list[TopicBucket]
    total_amount: Decimal
    total_rows: int
