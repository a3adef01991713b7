"""The export in FOCUS, the FinOps Open Cost and Usage Specification."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.dependencies import ContextDep, TenantDep
from chargeback.api.documentation import documented
from chargeback.api.export_files import MEDIA_TYPES, file_response
from chargeback.api.facts import CATEGORIES_HEADER, FactsDep, category_versions
from chargeback.api.parameters import body, query
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.schemas.focus import FocusMetadata, FocusMetadataQuery, FocusRequest, utc_days
from chargeback.service.tenant_view import TenantView
from chargeback.store.queries.focus import FocusSource, focus_file, focus_metadata
from chargeback.store.queries.focus_columns import FocusLayout
from chargeback.store.queries.focus_lookups import FocusTenant
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}/export/focus", tags=["Export"])

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


@router.post(
    "",
    response_class=Response,
    **documented(needs=Right.EXPORT, whole=True, body=FocusRequest, optional_body=True, extra={200: _FILE}),
)
async def export_focus(
    tenant: TenantDep, context: ContextDep, params: Annotated[FocusRequest, body(FocusRequest, optional=True)]
) -> Response:
    """Stream the bill in FOCUS: one row for each share of a billing line, for the calculated days of a range.

    The rows stand in place of the provider's own: never load both. Their `BilledCost` sums to the bill exactly, and so
    do list costs and quantities to those of their lines.

    A connection that ends early, without the end of the transfer, means that the export failed: such a file is not
    whole.
    """
    layout, days = params.layout, utc_days(params, tenant.lookback_days)
    headers: dict[str, str] = {}

    def _read(reader: TenantReader) -> Iterator[memoryview]:
        source = _source(tenant, reader, layout)
        headers.update(category_versions(reader))
        yield from focus_file(source, layout, days, params.format)

    pieces = context.stream(tenant, _read)
    return await file_response(context, pieces, f"focus-{layout.version}-{layout.split}", params.format, headers)


@router.get(
    "/metadata",
    response_model=FocusMetadata,
    response_model_exclude_none=True,
    **documented(needs=Right.READ, whole=True, query=FocusMetadataQuery, etag=True),
)
async def show_focus_metadata(
    facts: FactsDep, params: Annotated[FocusMetadataQuery, query(FocusMetadataQuery)]
) -> Response:
    """Describe the export in FOCUS: its columns, and which UTC days are complete.

    `page` and `timezone` are ignored."""
    layout, days = params.layout, utc_days(params, facts.tenant.lookback_days)

    def _make(reader: TenantReader, _: DataVersion) -> Response:
        return json_response(focus_metadata(_source(facts.tenant, reader, layout), layout, days))

    return await facts.versioned_answer(params, _make, also=facts.tenant.focus.discount)


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
