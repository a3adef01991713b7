"""What was measured: the evidence by which costs are shared."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.responses import page_response
from chargeback.api.schemas.common import PageOf
from chargeback.api.schemas.usage import MeasurementItem, UsageQuery
from chargeback.store.queries.measurements import MEASUREMENTS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get(
    "/usage",
    response_model=PageOf[MeasurementItem],
    **documented(needs=Right.READ, whole=True, query=UsageQuery, etag=True),
)
async def list_usage(facts: FactsDep, params: Annotated[UsageQuery, query(UsageQuery)]) -> Response:
    """List what was measured of whom, as it is kept to explain the shares of costs; ordered by UTC day or by value."""
    lookback_days = facts.tenant.lookback_days

    def _read(reader: TenantReader, version: DataVersion) -> Response:
        days = params.utc_days(lookback_days, version.control.last_calculated)
        selection = replace(Selection.of_days(days), columns=params.columns)
        items, total = reader.list_rows(MEASUREMENTS, selection, params.paging, params.order)
        return page_response(items, total, page=params.page, page_size=params.page_size)

    return await facts.versioned_answer(params, _read)
