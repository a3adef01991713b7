"""The flow of costs through several columns."""

from typing import Annotated, ClassVar

from fastapi import Query
from pydantic import Field, WithJsonSchema, field_validator

from chargeback.access.caller import Right
from chargeback.api.currency import CurrencyParameter, conversion_for
from chargeback.api.routing import Routes
from chargeback.api.selecting import CATEGORY_GROUPS, ComparingQuery, CostColumns, check_columns, column_or_tag
from chargeback.api.tenant_requests import Facts
from chargeback.reports.flow import FlowAnswer, flow_answer
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
        description=f"How many values each column names, 1 to {MOST_VALUES}; several numbers, repeated or separated by "
        "commas, are for one column each.",
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
        """Return how many values each column names; the last number applies to all further columns."""
        counts = [int(part) for part in self.top]
        return [counts[min(number, len(counts) - 1)] for number in range(len(self.by))]


router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/flow", needs=Right.READ, keep=True)
def show_flow(request: Facts, params: Annotated[FlowQuery, Query()]) -> FlowAnswer:
    """Return how costs flow from the values of each column to those of the next, compared with another period."""
    comparison = request.comparison(params)
    windows = [comparison.selection.window, comparison.previous]
    conversion = conversion_for(request.tenant, request.reader, params.currency, [CHARGEBACKS], windows)
    return flow_answer(request.tenant, request.reader, comparison, params.by, params.tops, conversion)
