"""The export in FOCUS, the FinOps Open Cost and Usage Specification."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from fastapi import Body, Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.export_files import MEDIA_TYPES, rows_file
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.focus import FocusMetadata, FocusMetadataQuery, FocusRequest, utc_days
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Export, Facts, RowsFile, category_versions
from chargeback.service.tenant_view import TenantView
from chargeback.store.queries.focus import FocusSource, focus_file, focus_metadata
from chargeback.store.queries.focus_columns import FocusLayout
from chargeback.store.queries.focus_lookups import FocusTenant
from chargeback.store.queries.reader import TenantReader

router = Routes(prefix="/tenants/{tenant_name}/export/focus", tags=["Export"])

_FILE: Final[dict[str, Any]] = {
    "description": "The rows by day, line, portion and payer.",
    "content": {
        MEDIA_TYPES["csv"]: {"schema": {"type": "string"}},
        MEDIA_TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}},
    },
    "headers": {
        "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a file name."},
        **CATEGORIES_HEADER,
    },
}


@router.post("", response_class=Response, needs=Right.EXPORT, whole=True, responses={200: _FILE})
def export_focus(request: Export, params: Annotated[FocusRequest, Body(default_factory=FocusRequest)]) -> RowsFile:
    """Stream the bill in FOCUS: one row for each share of a billing line, for the calculated days of a range.

    The rows stand in place of the provider's own: never load both. Their `BilledCost` sums to the bill exactly, and so
    do list costs and quantities to those of their lines.

    A connection that ends early, without the end of the transfer, means that the export failed: such a file is not
    whole.
    """
    tenant = request.tenant
    layout, days = params.layout, utc_days(params, tenant.lookback_days)

    def _read(reader: TenantReader) -> Iterator[memoryview]:
        source = _source(tenant, reader, layout)
        file.headers.update(category_versions(reader))
        yield from focus_file(source, layout, days, params.format)

    file = rows_file(f"focus-{layout.version}-{layout.split}", params.format, _read)
    return file


@router.get(
    "/metadata",
    response_model=FocusMetadata,
    response_model_exclude_none=True,
    needs=Right.READ,
    whole=True,
    also=lambda request, _: request.tenant.focus.discount,
)
def show_focus_metadata(request: Facts, params: Annotated[FocusMetadataQuery, Query()]) -> Response:
    """Describe the export in FOCUS: its columns, and which UTC days are complete.

    `page` and `timezone` are ignored."""
    layout, days = params.layout, utc_days(params, request.tenant.lookback_days)
    reader = request.reader
    return json_response(focus_metadata(_source(request.tenant, reader, layout), layout, days))


def _source(tenant: TenantView, reader: TenantReader, layout: FocusLayout) -> FocusSource:
    """Return what the data of a tenant is made of.

    Raises:
        InvalidRequest: it has no such columns.
    """
    source = FocusSource(reader, tenant.store.control, FocusTenant(tenant.tenant_name, tenant.tenant_id, tenant.focus))
    try:
        source.columns(layout)
    except ValueError as mistake:
        raise InvalidRequest([InvalidParameter("columns", str(mistake))]) from None
    return source
