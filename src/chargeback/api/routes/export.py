"""The export of chargebacks as a file."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.dependencies import ContextDep, TenantDep
from chargeback.api.documentation import documented
from chargeback.api.export_files import file_answer, file_response
from chargeback.api.facts import category_versions
from chargeback.api.parameters import body
from chargeback.api.schemas.export import ExportRequest
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Export"])

_FILE = file_answer("timestamp,identity_id,amount\r\n2026-01-31T00:00:00Z,sa-123abc,12.50\r\n")


@router.post(
    "/export",
    response_class=Response,
    **documented(needs=Right.EXPORT, body=ExportRequest, optional_body=True, extra={200: _FILE}),
)
async def export_chargebacks(
    tenant: TenantDep, context: ContextDep, params: Annotated[ExportRequest, body(ExportRequest, optional=True)]
) -> Response:
    """Stream chargeback rows as a file: CSV, Parquet or JSON lines.

    Parquet keeps the types: `amount` is a DECIMAL(38, 12), `timestamp` an instant in UTC, `tags` a map of texts and
    `metadata` a record. JSON lines have the values of the list, amounts as strings.

    In CSV, parse `amount` as a decimal, not as a binary floating-point number: it is exact to twelve places (pandas:
    `dtype={"amount": str}`, then `Decimal`; a spreadsheet rounds to 15 digits). Tags are written `key=value`, sorted by
    key and joined by `;`, with backslashes before `\\`, `;` and `=` in values. Text that a spreadsheet could take for
    a formula is defused with apostrophes: one at the beginning of a text that begins with `=`, `+`, `-`, `@`, `'`, tab
    or line break, and one after each `;`, tab or line break that `=`, `+`, `-`, `@`, `'` or `"` follows. To undo it,
    remove one apostrophe at the beginning and after each `;`, tab and line break. In `metadata`, which is JSON, `;` is
    written `\\u003b` instead. The other formats have texts as they are.

    A connection that ends early, without the end of the transfer, means that the export failed: such a file is not
    whole.
    """
    selection = params.selection(tenant.lookback_days)
    headers: dict[str, str] = {}

    def _rows(reader: TenantReader) -> Iterator[memoryview]:
        headers.update(category_versions(reader))
        yield from reader.export(CHARGEBACKS, selection, params.columns, form=params.format)

    pieces = context.stream(tenant, _rows, params.as_of)
    return await file_response(context, pieces, "chargebacks", params.format, headers)
