"""How chargebacks are filtered, and their sums."""

from typing import ClassVar, Literal

from pydantic import Field

from chargeback.api.parameters import Id, OptionalText, Text
from chargeback.api.schemas.datasets import AggregateParameters, DatasetQuery, Filters, groups_of
from chargeback.reports.answers import (
    CONVERSION,
    DIRECT_AMOUNT,
    SHARED_IN,
    SHARED_OUT,
    Amount,
    ConversionItem,
    ResponseModel,
)
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

CostType = Literal["usage", "shared"]


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


class AggregateQuery(ChargebackFilters, AggregateParameters):
    """Parameters of the aggregation."""

    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")
    names: bool = Field(default=False, description="Whether the display names of ids are included.")


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
