"""How costs flow through several columns."""

from datetime import date
from typing import Annotated, Any, ClassVar

from fastapi import Query
from pydantic import Field, WithJsonSchema, field_validator
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.currency import conversion_for, currency_of
from chargeback.api.parameters import CurrencyParameter
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.costs import ComparingQuery
from chargeback.api.schemas.datasets import CATEGORY_GROUPS, check_columns, column_or_tag
from chargeback.api.tenant_requests import Facts
from chargeback.model.money import render
from chargeback.reports.answers import CONVERSION, Amount, ConversionItem, ResponseModel
from chargeback.reports.flow import Flow, flow
from chargeback.reports.names import NAMED_COLUMNS, NamesByKind, names_in
from chargeback.store.queries.costs import COST_COLUMNS, Breakdown
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


router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/flow", response_model=FlowAnswer, needs=Right.READ, keep=True)
def show_flow(request: Facts, params: Annotated[FlowQuery, Query()]) -> Response:
    """Return how costs flow from the values of each column to those of the next, compared with another period."""
    tenant = request.tenant
    reader = request.reader
    version = request.version
    asked = params.comparison(tenant.lookback_days, version.control.last_calculated)
    windows = [asked.selection.window, asked.previous]
    conversion = conversion_for(tenant, reader, params.currency, [CHARGEBACKS], windows)
    rates = None if conversion is None else conversion.rates
    found = flow(reader, asked.selection, asked.previous, params.by, params.tops, rates)
    with tenant.store.control.read() as connection:
        names = names_in(connection, found.columns)
    dates = {"start_date": asked.period.start, "end_date": asked.period.end}
    own = dates | currency_of(tenant, conversion) | {"by": params.by}
    return json_response(own | _graph(found, names, has_previous=asked.compared is not None))


def _graph(found: Flow, names: NamesByKind, *, has_previous: bool) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    firsts = []
    for number, column in enumerate(found.columns):
        firsts.append(len(nodes))
        nodes += _nodes(number, column, names, has_previous=has_previous)
    links = [
        {
            "source": firsts[link.column] + link.source,
            "target": firsts[link.column + 1] + link.target,
            "amount": render(link.amount),
            "previous": render(link.previous) if has_previous else None,
        }
        for link in found.links
    ]
    return {"nodes": nodes, "links": links}


def _nodes(number: int, column: Breakdown, names: NamesByKind, *, has_previous: bool) -> list[dict[str, Any]]:
    kind = NAMED_COLUMNS.get(column.by)
    nodes: list[dict[str, Any]] = []
    for item in column.items:
        known = None if kind is None or item.value is None else names[kind].get(item.value)
        nodes.append(
            {
                "column": number,
                "by": column.by,
                "value": item.value,
                "name": None if known is None else known.name,
                "amount": render(item.amount),
                "previous": render(item.previous) if has_previous else None,
                "other": None,
            }
        )
    if column.other is not None:
        count, amount, previous = column.other
        nodes.append(
            {
                "column": number,
                "by": column.by,
                "value": None,
                "name": None,
                "amount": render(amount),
                "previous": render(previous) if has_previous else None,
                "other": count,
            }
        )
    return nodes
