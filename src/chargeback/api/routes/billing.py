"""Billing lines."""

from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.answers import page_answer
from chargeback.api.dependencies import TheTenant, TheWork
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.schemas.billing import BillingLineItem, BillingQuery
from chargeback.api.schemas.common import PageOf
from chargeback.api.work import Facts
from chargeback.store.queries.billing import billing_lines
from chargeback.store.queries.filters import Filters

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Billing"])


@router.get("/billing", response_model=PageOf[BillingLineItem], **documented(query=BillingQuery))
async def list_billing(
    tenant: TheTenant, work: TheWork, asked: Annotated[BillingQuery, query(BillingQuery)]
) -> Response:
    """Billing lines as the provider billed them, by time and ids."""
    window = asked.window(tenant.lookback_days)
    filters = Filters(product_type=asked.product_type, resource_id=asked.resource_id)

    def _ask(facts: Facts) -> tuple[list[dict[str, Any]], int]:
        return billing_lines(facts.cursor, tenant.store.facts, window, filters, asked.wanted)

    items, total = await work.ask(tenant, _ask)
    return page_answer(items, total, page=asked.page, page_size=asked.page_size)
