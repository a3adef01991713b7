"""Billing lines."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.responses import page_response
from chargeback.api.routing import Files, Routes
from chargeback.api.schemas.billing import BillingLineItem, BillingQuery
from chargeback.api.schemas.common import PageOf
from chargeback.api.tenant_requests import Facts
from chargeback.store.queries.datasets import BILLING_LINES

router = Routes(prefix="/tenants/{tenant_name}", tags=["Billing"])


@router.get("/billing", response_model=PageOf[BillingLineItem], needs=Right.READ, files=Files(rows="billing.csv"))
def list_billing(request: Facts, params: Annotated[BillingQuery, Query()]) -> Response:
    """List billing lines as billed by the provider, ordered by time and ids."""
    reader = request.reader
    selection = request.selection(params)
    items, total = reader.list_rows(BILLING_LINES, selection, params.paging)
    return page_response(items, total, page=params.page, page_size=params.page_size)
