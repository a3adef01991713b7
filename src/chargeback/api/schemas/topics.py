"""Topics in summary."""

from datetime import date
from typing import ClassVar

from pydantic import Field

from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.common import Amount, Decimal, ResponseModel
from chargeback.api.schemas.costs import ComparingQuery, OtherTopics, TopicCostItem
from chargeback.api.schemas.currency import CONVERSION, ConversionItem, CurrencyParameter
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset


class TopicsQuery(CostColumns, CurrencyParameter, ComparingQuery):
    """Parameters of the summary of topics: the filters of costs, of which those that topics know count."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    top: int = Field(default=100, ge=1, le=1000, description="How many topics are named.")


class TopicSummaryItem(TopicCostItem):
    """One topic, and what went through it."""

    bytes_in: Decimal | None = Field(description="Bytes written to it; null where that was not measured.")
    bytes_out: Decimal | None = Field(description="Bytes read from it; null where that was not measured.")
    zombie: bool = Field(description="It cost something although nothing went through it, as far as was measured.")


class TopicsSummary(ResponseModel):
    """The topics with the largest cost, and the others together."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total: Amount
    items: list[TopicSummaryItem]
    other: OtherTopics | None
    ignored_filters: list[str] = Field(
        description="Filters that topics know nothing of, as identities and tags.", examples=[["identity_id"]]
    )
