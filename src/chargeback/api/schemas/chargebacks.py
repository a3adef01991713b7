"""Chargeback rows, their dimensions, issues and sums."""

from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import Field

from chargeback.api.parameters import Id, TagKey, Text, tag_pair
from chargeback.api.problems import InvalidParameter
from chargeback.api.schemas.common import Decimal, Instant, Metadata, ResponseModel
from chargeback.api.schemas.datasets import AggregateParameters, DatasetQuery, groups_of
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.selection import TagFilter

CostType = Literal["usage", "shared"]


class ChargebackFilters(DatasetQuery):
    """The filters of chargebacks."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    identity_id: Text | None = Field(default=None, description="Only costs charged to this identity.")
    product_type: Text | None = Field(default=None, description="Only this product type.")
    resource_id: Id | None = Field(default=None, description="Only costs of this resource.")
    cost_type: CostType | None = Field(default=None, description="Only usage cost, or only shared cost.")


class ChargebackQuery(ChargebackFilters):
    """Parameters of the list of chargebacks, and of the allocation issues."""

    tag_key: TagKey | None = Field(default=None, description="Only rows with this tag.")
    tag_value: Text | None = Field(default=None, description="Only rows with this tag value; requires `tag_key`.")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check the dates, and the tag's value with its key."""
        return super().cross_checks(raw, now) + tag_pair(raw)

    def tag_filters(self) -> tuple[TagFilter, ...]:
        """Return the filter by one tag."""
        if self.tag_key is None:
            return ()
        return (TagFilter(self.tag_key, None if self.tag_value is None else frozenset([self.tag_value])),)


class AggregateQuery(ChargebackFilters, AggregateParameters):
    """Parameters of the aggregation."""

    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")
    tags: dict[TagKey, list[Text]] = Field(default_factory=dict)


class Dimension(ResponseModel):
    """What a chargeback row is about, without its time and its amount."""

    dimension_id: int = Field(description="Never changes, even after a recalculation; below 2^53.", examples=[1])
    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    identity_id: str = Field(
        description="The identity that pays; `UNALLOCATED` if none was found.", examples=["sa-123abc"]
    )
    cost_type: CostType
    allocation_method: str = Field(examples=["usage_ratio"])
    allocation_detail: str = Field(examples=["USAGE_RATIO_ALLOCATION"])


class ChargebackRow(Dimension):
    """One share of one billing line."""

    timestamp: Instant
    amount: Decimal
    tags: dict[str, str] = Field(
        description="Resolved at query time: the identity's tags take precedence over the resource's.",
        examples=[{"team": "payments"}],
    )
    metadata: Metadata


class AllocationIssue(ResponseModel):
    """What could not be allocated as its policy intends, summed over the range."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    identity_id: str = Field(examples=["UNALLOCATED"])
    allocation_detail: str = Field(description="Why.", examples=["NO_METRICS_LOCATED"])
    row_count: int
    usage_cost: Decimal
    shared_cost: Decimal
    total_cost: Decimal


class AggregateBucket(ResponseModel):
    """The sums of one group in one unit of time."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc"}])
    time_bucket: str = Field(
        description="`YYYY-MM-DD` (the day, the week's Monday, the month's 1st), or `YYYY-MM-DDTHH:00:00±hh:mm`.",
        examples=["2026-01-31"],
    )
    total_amount: Decimal
    usage_amount: Decimal
    shared_amount: Decimal
    row_count: int


class AggregateAnswer(ResponseModel):
    """Sums by group and time. The totals cover everything, also buckets left out for being too many."""

    buckets: list[AggregateBucket]
    total_amount: Decimal
    usage_amount: Decimal
    shared_amount: Decimal
    total_rows: int
