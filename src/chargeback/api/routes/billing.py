"""Billing lines."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.responses import page_response
from chargeback.api.schemas.billing import BillingLineItem, BillingQuery
from chargeback.api.schemas.common import PageOf
from chargeback.store.queries.datasets import BILLING_LINES
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Billing"])


@router.get(
    "/billing", response_model=PageOf[BillingLineItem], **documented(needs=Right.READ, query=BillingQuery, etag=True)
)
async def list_billing(facts: FactsDep, params: Annotated[BillingQuery, query(BillingQuery)]) -> Response:
    """List billing lines as billed by the provider, ordered by time and ids; with `Accept: text/csv`, as a file."""
    if facts.wants_csv:
        return await facts.download(params, "billing.csv")

    def _read(reader: TenantReader, selection: Selection) -> Response:
        items, total = reader.list_rows(BILLING_LINES, selection, params.paging)
        return page_response(items, total, page=params.page, page_size=params.page_size)

    return await facts.select(params, _read)
