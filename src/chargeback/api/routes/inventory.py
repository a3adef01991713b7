"""Resources and identities."""

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query
from sqlalchemy import RowMapping
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.csv_tables import csv_response
from chargeback.api.responses import json_response, page_response
from chargeback.api.routing import CSV, Routes
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
from chargeback.api.tenant_requests import Entities, EntitiesRequest
from chargeback.model.days import render_instant
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.given import EntityIds
from chargeback.store.control.inventory_lists import (
    IDENTITIES,
    RESOURCES,
    EntityKind,
    InventoryFilter,
    counts,
    every_listed,
    listed,
)

router = Routes(prefix="/tenants/{tenant_name}", tags=["Inventory"])

_TENANT = ("ecosystem", "tenant_id")
_SHARED = ("display_name", "metadata")
_TIMES = ("created_at", "deleted_at", "last_seen_at")
_RESOURCE_FIELDS = ("resource_id", "resource_type", "parent_id", "owner_id", "status", *_SHARED)
#: The fields that name another entity, and of which type that is.
_RELATED = {"parent_id": ("resource",), "owner_id": ("identity", "resource")}
_IDENTITY_FIELDS = ("identity_id", "identity_type", *_SHARED)


@router.get("/resources", response_model=PageOf[ResourceItem], needs=Right.READ, files=CSV)
def list_resources(request: Entities, params: Annotated[ResourceQuery, Query()]) -> Response:
    """List resources. Deleted ones are included unless you filter by time or status."""
    inventory_filter = _inventory_filter(params, params.resource_type, params.status)
    return _list(request, RESOURCES, params, inventory_filter, _RESOURCE_FIELDS)


@router.get("/identities", response_model=PageOf[IdentityItem], needs=Right.READ, files=CSV)
def list_identities(request: Entities, params: Annotated[IdentityQuery, Query()]) -> Response:
    """List identities. Deleted ones are included unless you filter by time."""
    inventory_filter = _inventory_filter(params, params.identity_type, None)
    return _list(request, IDENTITIES, params, inventory_filter, _IDENTITY_FIELDS)


@router.get("/inventory/summary", response_model=InventorySummary, needs=Right.READ)
def summarise(request: Entities, _params: Annotated[TenantsQuery, Query()]) -> Response:
    """Count resources and identities by type."""
    connection = request.connection
    visible = request.visible
    return json_response(
        {
            f"{kind.entity_type}_counts": counts(connection, kind, _of_kind(visible, kind))
            for kind in (RESOURCES, IDENTITIES)
        }
    )


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


def _list(
    request: EntitiesRequest,
    kind: EntityKind,
    params: InventoryQuery,
    inventory_filter: InventoryFilter,
    fields: tuple[str, ...],
) -> Response:
    page, tenant, connection, visible = params.paging, request.tenant, request.connection, request.visible
    wanted = replace(inventory_filter, ids=_of_kind(visible, kind))
    if request.wants_csv:
        rows = (_item(tenant, row, fields, visible) for row in every_listed(connection, kind, wanted))
        return csv_response(f"{kind.table.name}.csv", [*_TENANT, *fields, *_TIMES], rows)
    found, total = listed(connection, kind, wanted, offset=page.offset, limit=page.limit)
    items = [_item(tenant, row, fields, visible) for row in found]
    return page_response(items, total, page=params.page, page_size=params.page_size)


def _of_kind(visible: EntityIds | None, kind: EntityKind) -> Collection[str] | None:
    return None if visible is None else visible[kind.entity_type]


def _item(tenant: TenantView, row: RowMapping, fields: tuple[str, ...], visible: EntityIds | None) -> dict[str, Any]:
    """Return an entity as the API shows it. What it belongs to is not told where the caller does not see that."""
    item: dict[str, Any] = {name: getattr(tenant, name) for name in _TENANT}
    item |= {name: row[name] for name in fields}
    for name, kinds in _RELATED.items():
        if visible is not None and name in item and not any(item[name] in visible[kind] for kind in kinds):
            item[name] = None
    item |= {name: None if row[name] is None else render_instant(row[name]) for name in _TIMES}
    return item
