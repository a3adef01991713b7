"""The CSV export."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from chargeback.api.parameters import DateRangeParameters, Id, StrictModel, Text
from chargeback.api.schemas.chargebacks import CostType
from chargeback.api.schemas.datasets import selection_of
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.selection import Selection

if TYPE_CHECKING:
    Column = str
else:
    Column = Literal[tuple(CHARGEBACKS.export_columns)]


class ExportFilters(StrictModel):
    """Which rows are exported."""

    identity_id: Text | None = None
    product_type: Text | None = None
    resource_id: Id | None = None
    cost_type: CostType | None = None


class ExportRequest(DateRangeParameters):
    """What is exported; all fields have defaults."""

    columns: list[Column] = Field(
        default=list(CHARGEBACKS.default_export),
        min_length=1,
        description="Columns of the file, in this order, without duplicates. Available: "
        + ", ".join(f"`{column}`" for column in CHARGEBACKS.export_columns)
        + ".",
        json_schema_extra={"uniqueItems": True},
    )
    filters: ExportFilters = Field(
        default=ExportFilters(),
        description="Filters: `identity_id`, `product_type`, `resource_id`, `cost_type`, each optional.",
        json_schema_extra={"default": {}},
    )

    @field_validator("columns")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("should not name a column twice")
        return value

    def selection(self, lookback_days: int) -> Selection:
        """Return the selection of rows."""
        return selection_of(CHARGEBACKS, self, lookback_days, self.filters)
