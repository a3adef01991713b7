"""Billing lines."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.dependencies import ContextDep, TenantDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.responses import page_response
from chargeback.api.schemas.billing import BillingLineItem, BillingQuery
from chargeback.api.schemas.common import PageOf
from chargeback.store.queries.datasets import BILLING_LINES

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Billing"])


@router.get("/billing", response_model=PageOf[BillingLineItem], **documented(query=BillingQuery))
async def list_billing(
    tenant: TenantDep, context: ContextDep, params: Annotated[BillingQuery, query(BillingQuery)]
) -> Response:
    """List billing lines as billed by the provider, ordered by time and ids."""
    selection = params.selection(tenant.lookback_days)
    items, total = await context.query_facts(
        tenant, lambda reader: reader.list_rows(BILLING_LINES, selection, params.paging)
    )
    return page_response(items, total, page=params.page, page_size=params.page_size)
