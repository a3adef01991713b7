"""Costs from elsewhere beside those stored here."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import Body
from pydantic import BeforeValidator, Field, StringConstraints
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.parameters import AsOf, Day, StrictModel
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Calculation
from chargeback.errors import ConfigurationError
from chargeback.model.days import ONE_DAY
from chargeback.model.money import difference, render, total
from chargeback.reports.answers import ResponseModel, Sum
from chargeback.reports.external_costs.comparison import (
    ComparedCost,
    CostComparison,
    compare_costs,
    dataset_of,
    entity_names,
)
from chargeback.reports.external_costs.files import (
    MOST_PLACES,
    CostFileError,
    CostMapping,
    parse_mapping,
    period_of,
    read_costs,
)

MOST_COMPARED = 10_000
_MAX_MAPPING_LENGTH = 20_000

#: An exact decimal as text, with all decimal places that the file has.
LongDecimal = Annotated[str, Field(pattern=rf"^-?\d+\.\d{{2,{MOST_PLACES}}}$", examples=["1234.56"])]


def _parsed(value: object) -> object:
    """Return the mapping that was sent as YAML text; leave anything else as it is."""
    if not isinstance(value, str):
        return value
    if len(value) > _MAX_MAPPING_LENGTH:
        raise ValueError(f"should have at most {_MAX_MAPPING_LENGTH:,} characters")
    try:
        return parse_mapping(value)
    except ConfigurationError as error:
        raise ValueError(f"should be YAML of a mapping: {error}") from None


class ExternalCosts(StrictModel):
    """A file of costs and how to read it."""

    csv: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="The file: CSV whose first line has the names of the columns.",
        examples=["date,resource,type,amount\n2026-01-31,lkc-abc123,KAFKA_BASE,12.50\n"],
    )
    mapping: Annotated[CostMapping, BeforeValidator(_parsed, json_schema_input_type=CostMapping | str)] = Field(
        description="Which columns mean what, as an object or as YAML text of one.",
        examples=[{"columns": {"date": "date", "entity": "resource", "product_type": "type", "amount": "amount"}}],
    )
    start_date: Day | None = Field(
        default=None, description="First UTC day to compare. Default: the first one in the file."
    )
    end_date: Day | None = Field(
        default=None, description="Last UTC day to compare, inclusive. Default: the last one in the file."
    )
    as_of: AsOf = None
    limit: int = Field(
        default=1000, ge=1, le=MOST_COMPARED, description="How many entries, the largest difference first."
    )


class ComparedAmounts(ResponseModel):
    """A sum on both sides."""

    theirs: LongDecimal
    ours: Sum
    delta: LongDecimal = Field(description="`ours` minus `theirs`, exactly.")


class ComparedItem(ResponseModel):
    """What both sides say of one entity and product type."""

    entity: str | None = Field(description="Null if the mapping has no column for it.", examples=["lkc-abc123"])
    name: str | None = Field(description="Its display name.", examples=["prod"])
    product_type: str | None = Field(
        description="Null if the mapping has no column for it.", examples=["KAFKA_NUM_CKUS"]
    )
    theirs: LongDecimal | None = Field(description="Null if the file has nothing of it.")
    ours: Sum | None = Field(description="Null if nothing of it is stored here.")
    delta: LongDecimal = Field(description="`ours` minus `theirs`, exactly.")


class ComparedRest(ComparedAmounts):
    """The entries that are not listed, together."""

    count: int


class OneSided(ResponseModel):
    """What only one side has, listed or not."""

    count: int
    amount: LongDecimal


class ExternalReconciliation(ResponseModel):
    """Costs from elsewhere beside those stored here, the largest difference first."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    compared_with: Literal["billing", "chargebacks"]
    lines: int = Field(description="Lines of the file in these days.")
    outside: int = Field(description="Lines of the file on other days, which are left out.")
    total: ComparedAmounts
    only_theirs: OneSided
    only_ours: OneSided
    items: list[ComparedItem]
    other: ComparedRest | None = Field(description="The entries beyond `limit`, together.")


router = Routes(prefix="/tenants/{tenant_name}/reconciliation", tags=["Reconciliation"])


@router.post("/external", response_model=ExternalReconciliation, needs=Right.READ, whole=True)
def reconcile_with_file(request: Calculation, params: Annotated[ExternalCosts, Body()]) -> Response:
    """Compare an invoice, or the provider's own cost allocation, with the bill or the chargebacks: theirs, ours, and
    the difference, by entity and product type.

    The file is sent as text in JSON, and its columns are named by a mapping; nothing is stored. A file above 8 MiB can
    be compared by `chargeback reconcile`.
    """
    tenant, reader = request.tenant, request.facts
    try:
        costs = read_costs(params.csv, params.mapping, tenant.currency)
    except CostFileError as error:
        raise InvalidRequest([InvalidParameter("csv", str(mistake)) for mistake in error.mistakes]) from None
    days = period_of(costs, params.start_date, params.end_date)
    if days is None:
        raise InvalidRequest([InvalidParameter("start_date", "is needed with end_date: the file has no days")])
    if days.start >= days.end:
        raise InvalidRequest([InvalidParameter("start_date", f"should not be after the end, {days.end - ONE_DAY}")])
    found = compare_costs(reader, costs, params.mapping, days)
    with tenant.store.control.read() as connection:
        names = entity_names(connection, found, params.mapping)
    return json_response(
        {
            "start_date": days.start,
            "end_date": days.end - ONE_DAY,
            "currency": tenant.currency,
            "compared_with": dataset_of(params.mapping).table,
            "lines": found.lines,
            "outside": found.outside,
        }
        | _answer(found, names, params.limit)
    )


def _answer(found: CostComparison, names: Mapping[str, str], limit: int) -> dict[str, Any]:
    listed, rest = found.items[:limit], found.items[limit:]
    return {
        "total": _amounts(found.items),
        "only_theirs": _one_sided([item.theirs for item in found.items if item.ours is None]),
        "only_ours": _one_sided([item.ours for item in found.items if item.theirs is None]),
        "items": [
            {
                "entity": item.key[0],
                "name": None if item.key[0] is None else names.get(item.key[0]),
                "product_type": item.key[1],
                "theirs": None if item.theirs is None else render(item.theirs),
                "ours": None if item.ours is None else render(item.ours),
                "delta": render(item.delta),
            }
            for item in listed
        ],
        "other": {"count": len(rest)} | _amounts(rest) if rest else None,
    }


def _amounts(items: Sequence[ComparedCost]) -> dict[str, str]:
    theirs = total(item.theirs for item in items if item.theirs is not None)
    ours = total(item.ours for item in items if item.ours is not None)
    return {"theirs": render(theirs), "ours": render(ours), "delta": render(difference(ours, theirs))}


def _one_sided(amounts: Sequence[Any]) -> dict[str, Any]:
    return {"count": len(amounts), "amount": render(total(amounts))}
