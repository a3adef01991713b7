"""The export of chargebacks as a file."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Body
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.export_files import file_answer, rows_file
from chargeback.api.routing import Routes
from chargeback.api.schemas.export import ExportRequest
from chargeback.api.tenant_requests import Export, RowsFile, category_versions
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader

router = Routes(prefix="/tenants/{tenant_name}", tags=["Export"])

_FILE = file_answer("timestamp,identity_id,amount\r\n2026-01-31T00:00:00Z,sa-123abc,12.50\r\n")


@router.post("/export", response_class=Response, needs=Right.EXPORT, responses={200: _FILE})
def export_chargebacks(
    request: Export, params: Annotated[ExportRequest, Body(default_factory=ExportRequest)]
) -> RowsFile:
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
    selection = params.selection(request.tenant.lookback_days)

    def _rows(reader: TenantReader) -> Iterator[memoryview]:
        file.headers.update(category_versions(reader))
        yield from reader.export(CHARGEBACKS, selection, params.columns, form=params.format)

    file = rows_file("chargebacks", params.format, _rows)
    return file
