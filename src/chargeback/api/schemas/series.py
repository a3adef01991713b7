"""Costs over time as flat rows, for programs that draw charts."""

from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.common import ResponseModel
from chargeback.api.schemas.currency import CONVERSION, ConversionItem, CurrencyParameter
from chargeback.api.schemas.datasets import DatasetQuery, check_columns, column_or_tag
from chargeback.store.queries.costs import COST_COLUMNS
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

#: An amount as a JSON number with all its digits; programs that read it as binary floating point round it.
ShownNumber = Annotated[Any, Field(json_schema_extra={"type": "number", "examples": [1234.56]})]


class SeriesQuery(CostColumns, CurrencyParameter, DatasetQuery):
    """Parameters of the series."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    group_by: str | None = Field(
        default=None,
        description=f"A row for each value of this column and unit of time: {', '.join(COST_COLUMNS)}, `tag:<key>` or "
        "`category:<key>`. Default: a row for each unit of time.",
        examples=["product_category"],
        json_schema_extra=column_or_tag(COST_COLUMNS),
    )
    time_bucket: Literal["day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks begin on Monday."
    )
    top: int = Field(default=10, ge=1, le=50, description="How many values, the largest first; the others are one.")

    @field_validator("group_by")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None:
            check_columns([value], COST_COLUMNS)
        return value


class SeriesRow(ResponseModel):
    """The amount of one value in one unit of time."""

    time: datetime = Field(
        description="When the unit of time begins, with the offset of `timezone`.",
        examples=["2026-01-31T00:00:00+00:00"],
    )
    value: str | None = Field(description="Null for rows without a value, and for the others together.")
    name: str = Field(
        description="What to write beside it: the display name, or the value; `(other)` for the others together, "
        "`(none)` for rows without a value, `total` without `group_by`.",
        examples=["orders-service"],
    )
    amount: ShownNumber


class SeriesAnswer(ResponseModel):
    """Costs over time. The rows of a unit of time add up to its total, with all digits."""

    start_date: date
    end_date: date
    timezone: str = Field(examples=["UTC"])
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total: ShownNumber
    rows: list[SeriesRow] = Field(description="By time, then as `top` orders the values.")
