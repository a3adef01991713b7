"""The CSV export."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.dependencies import ContextDep, TenantDep
from chargeback.api.documentation import csv_answer, documented
from chargeback.api.parameters import body
from chargeback.api.responses import ByteStream
from chargeback.api.schemas.export import ExportRequest
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Export"])

_CSV = csv_answer(
    "The rows as CSV (RFC 4180, UTF-8), by time and ids.",
    example="timestamp,identity_id,amount\r\n2026-01-31T00:00:00Z,sa-123abc,12.50\r\n",
)


@router.post(
    "/export",
    response_class=Response,
    **documented(body=ExportRequest, optional_body=True, extra={200: _CSV}),
)
async def export_chargebacks(
    tenant: TenantDep, context: ContextDep, params: Annotated[ExportRequest, body(ExportRequest, optional=True)]
) -> Response:
    """Stream chargeback rows as CSV.

    Parse `amount` as a decimal, not as a binary floating-point number: it is exact to twelve places (pandas:
    `dtype={"amount": str}`, then `Decimal`; a spreadsheet rounds to 15 digits).

    Tags are written `key=value`, sorted by key and joined by `;`, with backslashes before `\\`, `;` and `=` in values.
    Text that a spreadsheet could take for a formula is defused with apostrophes: one at the beginning of a text that
    begins with `=`, `+`, `-`, `@`, `'`, a tab or a line break, and one after each `;`, tab or line break that `=`, `+`,
    `-`, `@`, `'` or `"` follows. To undo it, remove one apostrophe at the beginning and after each `;`, tab and line
    break. In `metadata`,
    which is JSON, `;` is written `\\u003b` instead.

    A connection that ends early, without the end of the transfer, means that the export failed: such a file is not
    whole.
    """
    selection = params.selection(tenant.lookback_days)

    def _rows(reader: TenantReader) -> Iterator[memoryview]:
        return reader.export_csv(CHARGEBACKS, selection, params.columns)

    pieces = context.stream(tenant, _rows, params.as_of)
    return await ByteStream.begin(
        context,
        pieces,
        media_type="text/csv",
        headers={"Content-Disposition": "attachment; filename=chargebacks.csv"},
    )
