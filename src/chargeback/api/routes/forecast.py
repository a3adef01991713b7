"""Forecasts: the expected costs of future days."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Annotated, ClassVar

from fastapi import Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import Day
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.routing import Routes
from chargeback.api.selecting import CostColumn, CostColumns, DatasetQuery, column_or_tag
from chargeback.api.tenant_requests import Facts
from chargeback.reports.daily_forecasts import (
    ForecastAnswer,
    ForecastRequest,
    daily_forecasts,
    nothing_known,
    usual_until,
)
from chargeback.reports.forecast import known_days
from chargeback.reports.names import names_of_ids
from chargeback.reports.reconciliation import states_seen
from chargeback.store.queries.costs import COST_COLUMNS
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

#: The maximum length of a forecast.
_FURTHEST = timedelta(days=92)


class ForecastQuery(CostColumns, DatasetQuery):
    """Parameters of a forecast. Periods have no effect: it begins on the first day after the last known one."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    until: Day | None = Field(
        default=None,
        description=f"The last UTC day; {_FURTHEST.days} days after the last known one at most. Default: the end of "
        "the month.",
        examples=[None],
    )
    group_by: CostColumn | None = Field(
        default=None,
        description=f"Also forecast each value of this column: {', '.join(COST_COLUMNS)}, `tag:<key>`, "
        "`category:<key>`.",
        examples=["product_category"],
        json_schema_extra=column_or_tag(COST_COLUMNS),
    )
    top: int = Field(default=10, ge=1, le=50, description="How many values, the most expensive first.")


router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/forecast", needs=Right.READ, keep=True)
def show_forecast(request: Facts, params: Annotated[ForecastQuery, Query()]) -> ForecastAnswer:
    """Return the expected costs of the days after the last known one, and the past errors of such forecasts. The
    forecast is a weighted mean of several methods: those with smaller past errors have larger weights. Costs that are
    billed on a few days of each month are expected on the same days again. The numbers are estimates."""
    tenant, reader = request.tenant, request.reader
    with request.reading() as connection:
        known = known_days(states_seen(reader, connection))
    if known is None:
        return nothing_known(tenant.currency)
    until = params.until or usual_until(known)
    if not known.end <= until < known.end + _FURTHEST:
        last = known.end + _FURTHEST - timedelta(days=1)
        raise InvalidRequest([InvalidParameter("until", f"should be a day from {known.end} to {last}")])

    def _named(values: Collection[str | None]) -> Mapping[str, str]:
        if params.group_by is None:
            return {}
        with request.reading() as connection:
            return names_of_ids(connection, params.group_by, values)

    selection = params.selection(tenant.lookback_days, request.version.control.last_calculated)
    asked = ForecastRequest(selection, known, until, params.group_by, params.top)
    return daily_forecasts(reader, asked, tenant.currency, _named)
