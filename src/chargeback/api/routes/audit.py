"""The audit log."""

from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import Connection, RowMapping
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.conditional import ControlDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.responses import page_response
from chargeback.api.schemas.audit import AuditItem, AuditQuery
from chargeback.api.schemas.common import PageOf
from chargeback.model.days import render_instant
from chargeback.store.control.audit import audit_entries

router = APIRouter(prefix="/tenants/{tenant_name}/audit", tags=["Audit"])


@router.get(
    "", response_model=PageOf[AuditItem], **documented(needs=Right.READ, whole=True, query=AuditQuery, etag=True)
)
async def list_audit_entries(control: ControlDep, params: Annotated[AuditQuery, query(AuditQuery)]) -> Response:
    """List who changed tags, views and cost categories, requested runs, or was refused, the newest first.

    Without dates, everything that is kept is listed: the last 400 days."""
    page, wanted = params.paging, params.wanted(control.tenant.lookback_days)

    def _read(connection: Connection) -> Response:
        rows, total = audit_entries(connection, wanted, offset=page.offset, limit=page.limit)
        return page_response([_item(row) for row in rows], total, page=params.page, page_size=params.page_size)

    return await control.of_anything(_read)


def _item(row: RowMapping) -> dict[str, Any]:
    return {**row, "id": str(row["id"]), "at": render_instant(row["at"])}
