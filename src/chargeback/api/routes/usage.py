"""Measurements: the evidence for sharing costs."""

from dataclasses import replace
from datetime import date
from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.parameters import Id, Text
from chargeback.api.responses import page_response
from chargeback.api.routing import Routes
from chargeback.api.selecting import PeriodQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import DayRange
from chargeback.reports.answers import Exact, PageOf, ResponseModel
from chargeback.store.queries.measurements import MEASUREMENTS
from chargeback.store.queries.paging import Order
from chargeback.store.queries.selection import ColumnFilter, Selection


class MeasurementQuery(PeriodQuery):
    """Parameters of the list of measurements. Days are UTC days, in every time zone."""

    measure: list[Text] = Field(default=[], description="Only this measure, such as `bytes_in`.")
    resource_id: list[Id] = Field(default=[], description="Only measurements on this resource.")
    subject: list[Text] = Field(default=[], description="Only measurements of this identity or name.")
    sort_by: Literal["date", "value"] = Field(default="date", description="The order of the measurements.")
    sort_order: Literal["asc", "desc"] = Field(default="asc", description="Direction.")

    @property
    def order(self) -> Order | None:
        """Return the order if it is not the default one."""
        if (self.sort_by, self.sort_order) == ("date", "asc"):
            return None
        return Order(self.sort_by, self.sort_order == "desc")

    @property
    def columns(self) -> tuple[ColumnFilter, ...]:
        """The filters."""
        given = ((name, getattr(self, name)) for name in MEASUREMENTS.filters)
        return tuple(ColumnFilter(name, frozenset(values)) for name, values in given if values)

    def utc_days(self, lookback_days: int, last: date | None) -> DayRange:
        """Return the requested UTC days; ``last`` is the last calculated day."""
        return self.chosen_period(lookback_days, last).day_range


class MeasurementItem(ResponseModel):
    """One measurement of one UTC day."""

    date: date
    measure: str = Field(
        description="The measure that a policy names in `usage(…)`; followed by `_by_statement` if it is stored by "
        "statement.",
        examples=["bytes_in"],
    )
    resource_id: str = Field(examples=["lkc-abc123"])
    subject: str = Field(
        description="The identity that used it, as the metrics name it; for statements their name, whose owner the "
        "inventory has.",
        examples=["sa-123abc"],
    )
    value: Exact = Field(description="The value in the unit of the measure, such as bytes.")


router = Routes(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get("/usage", response_model=PageOf[MeasurementItem], needs=Right.READ, whole=True)
def list_usage(request: Facts, params: Annotated[MeasurementQuery, Query()]) -> Response:
    """List the stored measurements that explain the shares of costs, ordered by UTC day or by value."""
    lookback_days = request.tenant.lookback_days
    reader = request.reader
    version = request.version
    days = params.utc_days(lookback_days, version.control.last_calculated)
    selection = replace(Selection.of_days(days), columns=params.columns)
    items, total = reader.list_rows(MEASUREMENTS, selection, params.paging, params.order)
    return page_response(items, total, page=params.page, page_size=params.page_size)
