"""The audit log."""

from typing import Annotated, Any

from fastapi import Query
from sqlalchemy import RowMapping
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.responses import page_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.audit import AuditItem, AuditQuery
from chargeback.api.schemas.common import PageOf
from chargeback.api.tenant_requests import Control
from chargeback.model.days import render_instant
from chargeback.store.control.audit import audit_entries

router = Routes(prefix="/tenants/{tenant_name}/audit", tags=["Audit"])


@router.get("", response_model=PageOf[AuditItem], needs=Right.READ, whole=True)
def list_audit_entries(request: Control, params: Annotated[AuditQuery, Query()]) -> Response:
    """List who changed tags, views and cost categories, requested runs, or was refused, the newest first.

    Without dates, everything that is kept is listed: the last 400 days."""
    page, wanted = params.paging, params.wanted(request.tenant.lookback_days)
    connection = request.connection
    rows, total = audit_entries(connection, wanted, offset=page.offset, limit=page.limit)
    return page_response([_item(row) for row in rows], total, page=params.page, page_size=params.page_size)


def _item(row: RowMapping) -> dict[str, Any]:
    return {**row, "id": str(row["id"]), "at": render_instant(row["at"])}
