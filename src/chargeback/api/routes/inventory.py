"""Resources and identities."""

from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import Connection, RowMapping
from starlette.responses import Response

from chargeback.api.dependencies import ContextDep, TenantDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.responses import json_response, page_response
from chargeback.api.schemas.common import PageOf
from chargeback.api.schemas.inventory import (
    IdentityItem,
    IdentityQuery,
    InventoryQuery,
    InventorySummary,
    ResourceItem,
    ResourceQuery,
)
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.model.days import render_instant
from chargeback.service.executor import RequestContext
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, EntityKind, InventoryFilter, counts, listed

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Inventory"])

_SHARED = ("display_name", "metadata")
_TIMES = ("created_at", "deleted_at", "last_seen_at")
_RESOURCE_FIELDS = ("resource_id", "resource_type", "parent_id", "owner_id", "status", *_SHARED)
_IDENTITY_FIELDS = ("identity_id", "identity_type", *_SHARED)


@router.get("/resources", response_model=PageOf[ResourceItem], **documented(query=ResourceQuery))
async def list_resources(
    tenant: TenantDep, context: ContextDep, params: Annotated[ResourceQuery, query(ResourceQuery)]
) -> Response:
    """List resources. Deleted ones are included unless you filter by time or status."""
    inventory_filter = _inventory_filter(params, params.resource_type, params.status)
    return await _list(tenant, context, RESOURCES, params, inventory_filter, _RESOURCE_FIELDS)


@router.get("/identities", response_model=PageOf[IdentityItem], **documented(query=IdentityQuery))
async def list_identities(
    tenant: TenantDep, context: ContextDep, params: Annotated[IdentityQuery, query(IdentityQuery)]
) -> Response:
    """List identities. Deleted ones are included unless you filter by time."""
    inventory_filter = _inventory_filter(params, params.identity_type, None)
    return await _list(tenant, context, IDENTITIES, params, inventory_filter, _IDENTITY_FIELDS)


@router.get("/inventory/summary", response_model=InventorySummary, **documented(query=TenantsQuery))
async def summarise(
    tenant: TenantDep, context: ContextDep, _params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """Count resources and identities by type."""

    def _read(connection: Connection) -> dict[str, Any]:
        return {
            "resource_counts": counts(connection, RESOURCES),
            "identity_counts": counts(connection, IDENTITIES),
        }

    return json_response(await context.read_control(tenant, _read))


def _inventory_filter(params: InventoryQuery, kind: str | None, status: str | None) -> InventoryFilter:
    return InventoryFilter(
        type=kind,
        status=status,
        period=params.period,
        search=params.search,
        sort_by=params.sort_by,
        descending=params.sort_order == "desc",
        tag_key=params.tag_key,
        tag_value=params.tag_value,
    )


async def _list(
    tenant: TenantView,
    context: RequestContext,
    kind: EntityKind,
    params: InventoryQuery,
    inventory_filter: InventoryFilter,
    fields: tuple[str, ...],
) -> Response:
    page = params.paging

    def _read(connection: Connection) -> tuple[list[dict[str, Any]], int]:
        rows, total = listed(connection, kind, inventory_filter, offset=page.offset, limit=page.limit)
        return [_item(tenant, row, fields) for row in rows], total

    items, total = await context.read_control(tenant, _read)
    return page_response(items, total, page=params.page, page_size=params.page_size)


def _item(tenant: TenantView, row: RowMapping, fields: tuple[str, ...]) -> dict[str, Any]:
    item: dict[str, Any] = {"ecosystem": tenant.ecosystem, "tenant_id": tenant.tenant_id}
    item |= {name: row[name] for name in fields}
    item |= {name: None if row[name] is None else render_instant(row[name]) for name in _TIMES}
    return item
