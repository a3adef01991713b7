"""Chargeback rows, their dimensions, issues and sums."""

import decimal
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from chargeback.api.parameters import Id, OptionalText, TagKey, Text, tag_pair
from chargeback.api.problems import InvalidParameter
from chargeback.api.schemas.datasets import AggregateParameters, DatasetQuery, Filters, TagFilters, groups_of
from chargeback.model.chargeback import CostType
from chargeback.reports.answers import (
    CONVERSION,
    DIRECT_AMOUNT,
    SHARED_IN,
    SHARED_OUT,
    Amount,
    CategoryPart,
    ConversionItem,
    Exact,
    Instant,
    Metadata,
    ResponseModel,
    Sum,
)
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.paging import Order
from chargeback.store.queries.selection import Selection, TagFilter

#: An amount as a client writes it.
AmountText = Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,26}(\.[0-9]{1,12})?$")]


class CostColumns(Filters):
    """The columns by which costs are filtered."""

    identity_id: list[Text] = Field(default=[], description="Only costs charged to this identity.")
    product_type: list[Text] = Field(default=[], description="Only this product type.")
    resource_id: list[Id] = Field(default=[], description="Only costs of this resource.")
    cost_type: list[CostType] = Field(default=[], description="Only usage cost, or only shared cost.")
    product_category: list[Text] = Field(default=[], description="Only this product category.")
    environment_id: list[OptionalText] = Field(
        default=[], description="Only costs in this environment; empty: costs in none."
    )
    cluster_id: list[OptionalText] = Field(
        default=[],
        description="Only costs of resources in this Kafka cluster, as the inventory has it now; empty: of those in "
        "none.",
    )
    allocation_method: list[Text] = Field(default=[], description="Only what was allocated by this method.")
    allocation_detail: list[Text] = Field(default=[], description="Only what was allocated for this reason.")


class ChargebackColumns(CostColumns):
    """The columns by which chargeback rows are filtered."""

    line_id: list[Text] = Field(default=[], description="Only the shares of this billing line.")


class ChargebackFilters(ChargebackColumns, DatasetQuery):
    """The filters of chargebacks."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: ChargebackColumns = ChargebackColumns()


class ChargebackQuery(ChargebackFilters):
    """Parameters of the list of chargebacks, and of the allocation issues."""

    tag_key: TagKey | None = Field(default=None, description="Only rows with this tag.")
    tag_value: Text | None = Field(default=None, description="Only rows with this tag value; requires `tag_key`.")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check the dates, and the tag's value with its key."""
        return super().cross_checks(raw, now) + tag_pair(raw)

    def further_filters(self) -> TagFilters:
        """The filter by one tag, whose value may contain commas."""
        if self.tag_key is None:
            return ()
        return (TagFilter(self.tag_key, None if self.tag_value is None else frozenset([self.tag_value])),)


class ChargebackListQuery(ChargebackQuery):
    """Parameters of the list of chargebacks."""

    of_lists: ClassVar[frozenset[str]] = frozenset({"sort_by", "sort_order", "min_amount", "names"})

    sort_by: Literal["timestamp", "amount"] = Field(default="timestamp", description="What the rows are ordered by.")
    sort_order: Literal["asc", "desc"] = Field(default="asc", description="Direction.")
    min_amount: AmountText | None = Field(default=None, description="Only rows of at least this amount.")
    names: bool = Field(
        default=False, description="Whether rows come with the display names of their identity and resource."
    )

    @property
    def order(self) -> Order | None:
        """The order, where it is another than the list's own."""
        if (self.sort_by, self.sort_order) == ("timestamp", "asc"):
            return None
        return Order(self.sort_by, self.sort_order == "desc")

    def selection(self, lookback_days: int, last: date | None = None) -> Selection:
        """The rows that are meant."""
        least = None if self.min_amount is None else decimal.Decimal(self.min_amount)
        return replace(super().selection(lookback_days, last), min_amount=least)


class AggregateQuery(ChargebackFilters, AggregateParameters):
    """Parameters of the aggregation."""

    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")
    names: bool = Field(default=False, description="Whether the display names of ids are included.")


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
    amount: Exact
    tags: dict[str, str] = Field(
        description="Resolved at query time: the identity's tags take precedence over the resource's.",
        examples=[{"team": "payments"}],
    )
    categories: dict[str, list[CategoryPart]] | None = Field(
        default=None,
        description="Where the tenant has cost categories: by key, the values to which the row is assigned.",
    )
    metadata: Metadata
    identity_name: str | None = Field(
        default=None, description="With `names` only: the identity's display name.", examples=["orders-service"]
    )
    resource_name: str | None = Field(
        default=None, description="With `names` only: the resource's display name.", examples=["prod"]
    )


class AllocationIssue(ResponseModel):
    """What could not be allocated as its policy intends, summed over the range."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    identity_id: str = Field(examples=["UNALLOCATED"])
    allocation_detail: str = Field(description="Why.", examples=["NO_METRICS_LOCATED"])
    row_count: int
    usage_cost: Sum
    shared_cost: Sum
    total_cost: Sum


class AggregateBucket(ResponseModel):
    """The sums of one group in one unit of time."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc"}])
    time_bucket: str = Field(
        description="`YYYY-MM-DD` (the day, the week's Monday, the month's 1st), or `YYYY-MM-DDTHH:00:00±hh:mm`.",
        examples=["2026-01-31"],
    )
    total_amount: Amount
    usage_amount: Amount
    shared_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    row_count: int


class AggregateAnswer(ResponseModel):
    """Sums by group and time. The totals cover everything, also buckets left out for being too many."""

    buckets: list[AggregateBucket]
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total_amount: Amount
    usage_amount: Amount
    shared_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    total_rows: int
    names: dict[str, dict[str, str]] | None = Field(
        default=None,
        description="With `names` only: the display names of ids, by column. Ids without a name are left out.",
        examples=[{"identity_id": {"sa-123abc": "orders-service"}}],
    )
