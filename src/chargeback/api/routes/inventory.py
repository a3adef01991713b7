"""Resources and identities."""

from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import Connection, RowMapping
from starlette.responses import Response

from chargeback.api.dependencies import TheContext, TheTenant
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
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, Asked, Kind, counts, listed

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Inventory"])

_SHARED = ("display_name", "metadata")
_TIMES = ("created_at", "deleted_at", "last_seen_at")
_RESOURCE_FIELDS = ("resource_id", "resource_type", "parent_id", "owner_id", "status", *_SHARED)
_IDENTITY_FIELDS = ("identity_id", "identity_type", *_SHARED)


@router.get("/resources", response_model=PageOf[ResourceItem], **documented(query=ResourceQuery))
async def list_resources(
    tenant: TheTenant, context: TheContext, asked: Annotated[ResourceQuery, query(ResourceQuery)]
) -> Response:
    """Resources, those deleted meanwhile included unless a time or a status says otherwise."""
    wanted = _asked(asked, asked.resource_type, asked.status)
    return await _list(tenant, context, RESOURCES, asked, wanted, _RESOURCE_FIELDS)


@router.get("/identities", response_model=PageOf[IdentityItem], **documented(query=IdentityQuery))
async def list_identities(
    tenant: TheTenant, context: TheContext, asked: Annotated[IdentityQuery, query(IdentityQuery)]
) -> Response:
    """Identities, those deleted meanwhile included unless a time says otherwise."""
    wanted = _asked(asked, asked.identity_type, None)
    return await _list(tenant, context, IDENTITIES, asked, wanted, _IDENTITY_FIELDS)


@router.get("/inventory/summary", response_model=InventorySummary, **documented(query=TenantsQuery))
async def summarise(
    tenant: TheTenant, context: TheContext, _asked: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """How many resources and identities there are, by type."""

    def _read(connection: Connection) -> dict[str, Any]:
        return {
            "resource_counts": counts(connection, RESOURCES),
            "identity_counts": counts(connection, IDENTITIES),
        }

    return json_response(await context.read_control(tenant, _read))


def _asked(asked: InventoryQuery, kind: str | None, status: str | None) -> Asked:
    return Asked(
        type=kind,
        status=status,
        period=asked.period,
        search=asked.search,
        sort_by=asked.sort_by,
        descending=asked.sort_order == "desc",
        tag_key=asked.tag_key,
        tag_value=asked.tag_value,
    )


async def _list(
    tenant: TenantView,
    context: RequestContext,
    kind: Kind,
    asked: InventoryQuery,
    wanted: Asked,
    fields: tuple[str, ...],
) -> Response:
    page = asked.wanted

    def _read(connection: Connection) -> tuple[list[dict[str, Any]], int]:
        rows, total = listed(connection, kind, wanted, offset=page.offset, limit=page.limit)
        return [_item(tenant, row, fields) for row in rows], total

    items, total = await context.read_control(tenant, _read)
    return page_response(items, total, page=asked.page, page_size=asked.page_size)


def _item(tenant: TenantView, row: RowMapping, fields: tuple[str, ...]) -> dict[str, Any]:
    item: dict[str, Any] = {"ecosystem": tenant.ecosystem, "tenant_id": tenant.tenant_id}
    item |= {name: row[name] for name in fields}
    item |= {name: None if row[name] is None else render_instant(row[name]) for name in _TIMES}
    return item
