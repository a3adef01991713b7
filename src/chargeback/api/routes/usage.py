"""What was measured: the evidence by which costs are shared."""

from dataclasses import replace
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.responses import page_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.common import PageOf
from chargeback.api.schemas.usage import MeasurementItem, UsageQuery
from chargeback.api.tenant_requests import Facts
from chargeback.store.queries.measurements import MEASUREMENTS
from chargeback.store.queries.selection import Selection

router = Routes(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get("/usage", response_model=PageOf[MeasurementItem], needs=Right.READ, whole=True)
def list_usage(request: Facts, params: Annotated[UsageQuery, Query()]) -> Response:
    """List what was measured of whom, as it is kept to explain the shares of costs; ordered by UTC day or by value."""
    lookback_days = request.tenant.lookback_days
    reader = request.reader
    version = request.version
    days = params.utc_days(lookback_days, version.control.last_calculated)
    selection = replace(Selection.of_days(days), columns=params.columns)
    items, total = reader.list_rows(MEASUREMENTS, selection, params.paging, params.order)
    return page_response(items, total, page=params.page, page_size=params.page_size)
