"""External costs, such as an invoice, compared with the stored ones."""

from typing import Annotated

from fastapi import Body
from pydantic import BeforeValidator, Field, StringConstraints

from chargeback.access.caller import Right
from chargeback.api.parameters import AsOf, Day, StrictModel
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Calculation
from chargeback.errors import ConfigurationError
from chargeback.model.days import ONE_DAY
from chargeback.reports.external_costs.comparison import ExternalReconciliation, compare_costs
from chargeback.reports.external_costs.files import CostFileError, CostMapping, parse_mapping, period_of, read_costs

MOST_COMPARED = 10_000
_MAX_MAPPING_LENGTH = 20_000


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
        description="The meaning of the columns, as an object or as its YAML text.",
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


router = Routes(prefix="/tenants/{tenant_name}/reconciliation", tags=["Reconciliation"])


@router.post("/external", needs=Right.READ, whole=True)
def reconcile_with_file(request: Calculation, params: Annotated[ExternalCosts, Body()]) -> ExternalReconciliation:
    """Compare an invoice, or the provider's own cost allocation, with the bill or the chargebacks: their amount, ours,
    and the difference, by entity and product type.

    The file is sent as a text in JSON, and a mapping describes its columns; nothing is stored. Use `chargeback
    reconcile` for files above 8 MiB.
    """
    tenant, reader = request.tenant, request.reader
    try:
        costs = read_costs(params.csv, params.mapping, tenant.currency)
    except CostFileError as error:
        raise InvalidRequest([InvalidParameter("csv", str(mistake)) for mistake in error.mistakes]) from None
    days = period_of(costs, params.start_date, params.end_date)
    if days is None:
        raise InvalidRequest([InvalidParameter("start_date", "is needed with end_date: the file has no days")])
    if days.start >= days.end:
        raise InvalidRequest([InvalidParameter("start_date", f"should not be after the end, {days.end - ONE_DAY}")])
    with tenant.store.control.read() as connection:
        return compare_costs(
            reader, connection, costs, params.mapping, days, currency=tenant.currency, limit=params.limit
        )
