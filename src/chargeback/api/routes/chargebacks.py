"""Chargeback rows, their dimensions, dates and issues."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from chargeback.api.dependencies import ContextDep, TenantDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.problems import NotFound
from chargeback.api.responses import json_response, page_response
from chargeback.api.schemas.chargebacks import AllocationIssue, ChargebackQuery, ChargebackRow, Dimension
from chargeback.api.schemas.common import DatesAnswer, PageOf
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.store.queries.chargebacks import allocation_issues, dimension
from chargeback.store.queries.datasets import CHARGEBACKS

router = APIRouter(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])


@router.get("", response_model=PageOf[ChargebackRow], **documented(query=ChargebackQuery))
async def list_chargebacks(
    tenant: TenantDep, context: ContextDep, params: Annotated[ChargebackQuery, query(ChargebackQuery)]
) -> Response:
    """List chargeback rows with their tags, ordered by time and ids."""
    selection = params.selection(tenant.lookback_days)
    items, total = await context.query_facts(
        tenant, lambda reader: reader.list_rows(CHARGEBACKS, selection, params.paging)
    )
    return page_response(items, total, page=params.page, page_size=params.page_size)


@router.get("/dates", response_model=DatesAnswer, **documented(query=TenantsQuery))
async def list_dates(
    tenant: TenantDep, context: ContextDep, _params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """List all UTC days with chargeback rows; date parameters are ignored."""
    return json_response({"dates": await context.query_facts(tenant, lambda reader: reader.dates(CHARGEBACKS))})


@router.get("/allocation-issues", response_model=PageOf[AllocationIssue], **documented(query=ChargebackQuery))
async def list_issues(
    tenant: TenantDep, context: ContextDep, params: Annotated[ChargebackQuery, query(ChargebackQuery)]
) -> Response:
    """List costs that could not be allocated as intended by their policy, with the reason, summed over the range."""
    selection = params.selection(tenant.lookback_days)
    items, total = await context.query_facts(tenant, lambda reader: allocation_issues(reader, selection, params.paging))
    return page_response(items, total, page=params.page, page_size=params.page_size)


@router.get(
    "/{dimension_id}",
    response_model=Dimension,
    **documented(query=TenantsQuery, problems={404: "The tenant or the dimension does not exist."}),
)
async def one_dimension(
    tenant: TenantDep,
    context: ContextDep,
    dimension_id: Annotated[str, Path(description="A `dimension_id` of a chargeback row.", pattern="^[0-9]{1,16}$")],
    _params: Annotated[TenantsQuery, query(TenantsQuery)],
) -> Response:
    """Return one dimension: the common fields of its chargeback rows."""
    found = await context.query_facts(tenant, lambda reader: dimension(reader, int(dimension_id)))
    if found is None:
        raise NotFound(f"Tenant {tenant.tenant_name} has no chargeback dimension {dimension_id[:80]!r}.")
    return json_response(found)
