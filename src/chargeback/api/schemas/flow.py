"""How costs flow through several columns."""

from datetime import date
from typing import Annotated, ClassVar

from pydantic import Field, WithJsonSchema, field_validator

from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.common import Amount, ResponseModel
from chargeback.api.schemas.costs import ComparingQuery
from chargeback.api.schemas.currency import CONVERSION, ConversionItem, CurrencyParameter
from chargeback.api.schemas.datasets import CATEGORY_GROUPS, check_columns, column_or_tag
from chargeback.store.queries.costs import COST_COLUMNS
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

MOST_COLUMNS = 4
MOST_VALUES = 50
USUAL_VALUES = 10
_COUNT = "([1-9]|[1-4][0-9]|50)"
Counts = Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^{_COUNT}(,{_COUNT}){{0,{MOST_COLUMNS - 1}}}$"})]


class FlowQuery(CostColumns, CurrencyParameter, ComparingQuery):
    """Parameters of the flow."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    by: list[str] = Field(
        default=["environment_id", "resource_id", "identity_id"],
        min_length=2,
        max_length=MOST_COLUMNS,
        description=f"The columns, from left to right, repeatable: {', '.join(COST_COLUMNS)}, `tag:<key>`, or "
        f"{CATEGORY_GROUPS}; two to {MOST_COLUMNS}.",
        json_schema_extra={"items": column_or_tag(COST_COLUMNS)},
    )
    top: list[Counts] = Field(
        default=[str(USUAL_VALUES)],
        description=f"How many values each column names, 1 to {MOST_VALUES}; several, repeated or separated by commas, "
        "are for one column each.",
        examples=[["6,9,10"]],
    )

    @field_validator("by")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        check_columns(value, COST_COLUMNS)
        if len(set(value)) < len(value):
            raise ValueError("should name no column twice")
        return value

    @field_validator("top")
    @classmethod
    def _counts(cls, value: list[str]) -> list[str]:
        counts = [part for each in value for part in each.split(",")]
        if len(counts) > MOST_COLUMNS or not all(
            part.isascii() and part.isdigit() and len(part) < 4 and 1 <= int(part) <= MOST_VALUES for part in counts
        ):
            raise ValueError(f"should be at most {MOST_COLUMNS} numbers from 1 to {MOST_VALUES}")
        return counts

    @property
    def tops(self) -> list[int]:
        """How many values each column names; the last number holds for all columns after it."""
        counts = [int(part) for part in self.top]
        return [counts[min(number, len(counts) - 1)] for number in range(len(self.by))]


class FlowNode(ResponseModel):
    """One value of a column, or all that are not named (`other` tells how many)."""

    column: int
    by: str = Field(examples=["identity_id"])
    value: str | None
    name: str | None
    amount: Amount
    previous: Amount | None
    other: int | None


class FlowLink(ResponseModel):
    """What flows from one node to another; both are places in the list of nodes."""

    source: int
    target: int
    amount: Amount
    previous: Amount | None


class FlowAnswer(ResponseModel):
    """Nodes and what flows between them. Each column sums to the total."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    by: list[str]
    nodes: list[FlowNode]
    links: list[FlowLink]
