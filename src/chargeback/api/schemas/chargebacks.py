"""Chargeback rows, their dimensions, issues and sums."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from chargeback.api.parameters import TAG_PARAMETER, Common, Id, TagKey, Text, is_tag_key, tag_pair
from chargeback.api.problems import Invalid
from chargeback.api.schemas.common import Answer, Decimal, Instant, Metadata
from chargeback.store.queries.aggregate import GROUP_COLUMNS, TAG_PREFIX
from chargeback.store.queries.filters import Filters, TagFilter

CostType = Literal["usage", "shared"]

#: Each tag to group by is a join: some hundred of them need more memory than the query engine has.
MOST_GROUPS = 20


class ChargebackQuery(Common):
    """Parameters of the list of chargebacks, and of the allocation issues."""

    identity_id: Text | None = Field(default=None, description="Only what this identity was charged.")
    product_type: Text | None = Field(default=None, description="Only this product type.")
    resource_id: Id | None = Field(default=None, description="Only costs of this resource.")
    cost_type: CostType | None = Field(default=None, description="Only usage cost, or only shared cost.")
    tag_key: TagKey | None = Field(default=None, description="Only rows with this tag.")
    tag_value: Text | None = Field(default=None, description="Only rows where that tag has this value.")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any]) -> list[Invalid]:
        """Dates, and the tag's value with its key."""
        return super().cross_checks(raw) + tag_pair(raw)

    def filters(self) -> Filters:
        """The filters as the store knows them."""
        tags: tuple[TagFilter, ...] = ()
        if self.tag_key is not None:
            tags = (TagFilter(self.tag_key, None if self.tag_value is None else frozenset([self.tag_value])),)
        return Filters(self.identity_id, self.product_type, self.resource_id, self.cost_type, tags)


class AggregateQuery(Common):
    """Parameters of the aggregation."""

    takes_tags: ClassVar[bool] = True

    group_by: list[str] = Field(
        default=["identity_id"],
        max_length=MOST_GROUPS,
        description=f"Columns to group by, repeatable: {', '.join(GROUP_COLUMNS)}, or `tag:<key>`; "
        f"at most {MOST_GROUPS}.",
        json_schema_extra={
            "items": {
                "anyOf": [
                    {"type": "string", "enum": list(GROUP_COLUMNS)},
                    {"type": "string", "pattern": TAG_PARAMETER},
                ]
            }
        },
    )
    time_bucket: Literal["hour", "day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks begin on Monday."
    )
    identity_id: Text | None = Field(default=None, description="Only what this identity was charged.")
    product_type: Text | None = Field(default=None, description="Only this product type.")
    resource_id: Id | None = Field(default=None, description="Only costs of this resource.")
    cost_type: CostType | None = Field(default=None, description="Only usage cost, or only shared cost.")
    tags: dict[TagKey, list[Text]] = Field(default_factory=dict)

    @field_validator("group_by")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        """Every column is one of the list, or a tag; none twice."""
        for name in value:
            if name not in GROUP_COLUMNS and not is_tag(name):
                raise ValueError(f"{name[:80]!r} should be one of {', '.join(GROUP_COLUMNS)}, or tag:<key>")
        return list(dict.fromkeys(value))

    def filters(self) -> Filters:
        """The filters as the store knows them."""
        tags = tuple(
            TagFilter(key, frozenset(part for value in values for part in value.split(",")))
            for key, values in self.tags.items()
        )
        return Filters(self.identity_id, self.product_type, self.resource_id, self.cost_type, tags)


def is_tag(name: str) -> bool:
    """Whether a group is ``tag:<key>`` with a possible key."""
    return name.startswith(TAG_PREFIX) and is_tag_key(name.removeprefix(TAG_PREFIX))


class Dimension(Answer):
    """What a chargeback row is about, without its time and its amount."""

    dimension_id: int = Field(description="The same for ever, also after a recalculation; below 2^53.", examples=[1])
    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    identity_id: str = Field(description="Who pays; `UNALLOCATED` when nobody can be found.", examples=["sa-123abc"])
    cost_type: CostType
    allocation_method: str = Field(examples=["usage_ratio"])
    allocation_detail: str = Field(examples=["USAGE_RATIO_ALLOCATION"])


class ChargebackRow(Dimension):
    """One share of one billing line."""

    timestamp: Instant
    amount: Decimal
    tags: dict[str, str] = Field(
        description="Resolved now: the identity's tags win over the resource's.", examples=[{"team": "payments"}]
    )
    metadata: Metadata


class AllocationIssue(Answer):
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


class AggregateBucket(Answer):
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


class AggregateAnswer(Answer):
    """Sums by group and time. The totals cover everything, also buckets left out for being too many."""

    buckets: list[AggregateBucket]
    total_amount: Decimal
    usage_amount: Decimal
    shared_amount: Decimal
    total_rows: int
