"""The CSV export."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.answers import ByteStream
from chargeback.api.dependencies import TheTenant, TheWork
from chargeback.api.documentation import documented
from chargeback.api.parameters import body
from chargeback.api.schemas.export import ExportRequest
from chargeback.store.queries.export import csv_chunks

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Export"])

_CSV = {
    "description": "The rows as CSV (RFC 4180, UTF-8), by time and ids.",
    "content": {
        "text/csv": {
            "schema": {"type": "string"},
            "example": "timestamp,identity_id,amount\r\n2026-01-31T00:00:00Z,sa-123abc,12.50\r\n",
        }
    },
    "headers": {
        "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a file name."}
    },
}


@router.post(
    "/export",
    response_class=Response,
    **documented(body=ExportRequest, optional_body=True, extra={200: _CSV}),
)
async def export_chargebacks(
    tenant: TheTenant, work: TheWork, asked: Annotated[ExportRequest, body(ExportRequest, optional=True)]
) -> Response:
    """Chargeback rows as CSV, streamed.

    Tags are written `key=value`, sorted by key and joined by `;`, with backslashes before `\\`, `;` and `=` in values.
    Text that a spreadsheet would take for a formula gets an apostrophe in front. A connection that ends early, without
    the end of the transfer, means that the export failed: such a file is not whole.
    """
    window, filters = asked.window(tenant.lookback_days), asked.narrowed()
    pieces = work.stream(
        tenant,
        lambda facts: csv_chunks(facts.cursor, tenant.store.facts, window, filters, asked.columns, facts.book),
    )
    return await ByteStream.begin(
        work,
        pieces,
        media_type="text/csv",
        headers={"Content-Disposition": "attachment; filename=chargebacks.csv"},
    )
