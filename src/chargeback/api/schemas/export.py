"""The CSV export."""

from typing import Literal

from pydantic import Field, field_validator

from chargeback.api.parameters import Dates, Id, Strict, Text
from chargeback.api.schemas.chargebacks import CostType
from chargeback.store.queries.export import DEFAULT_COLUMNS
from chargeback.store.queries.filters import Filters

Column = Literal[
    "ecosystem",
    "tenant_id",
    "timestamp",
    "resource_id",
    "product_category",
    "product_type",
    "identity_id",
    "cost_type",
    "amount",
    "allocation_method",
    "allocation_detail",
    "tags",
    "metadata",
]


class ExportFilters(Strict):
    """Which rows are exported."""

    identity_id: Text | None = None
    product_type: Text | None = None
    resource_id: Id | None = None
    cost_type: CostType | None = None


class ExportRequest(Dates):
    """What is exported; all fields have defaults."""

    columns: list[Column] = Field(
        default=list(DEFAULT_COLUMNS),
        min_length=1,
        description="Columns of the file, in this order, none twice.",
        json_schema_extra={"uniqueItems": True},
    )
    filters: ExportFilters = Field(
        default=ExportFilters(),
        description="Only these rows: `identity_id`, `product_type`, `resource_id`, `cost_type`, each optional.",
        json_schema_extra={"default": {}},
    )

    @field_validator("columns")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("should name no column twice")
        return value

    def narrowed(self) -> Filters:
        """The filters as the store knows them."""
        asked = self.filters
        return Filters(asked.identity_id, asked.product_type, asked.resource_id, asked.cost_type)
