"""Resources and identities."""

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import Connection, RowMapping
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.conditional import ControlDep, ControlRequest
from chargeback.api.csv_tables import csv_response
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

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Inventory"])

_TENANT = ("ecosystem", "tenant_id")
_SHARED = ("display_name", "metadata")
_TIMES = ("created_at", "deleted_at", "last_seen_at")
_RESOURCE_FIELDS = ("resource_id", "resource_type", "parent_id", "owner_id", "status", *_SHARED)
#: The fields that name another entity, and of which type that is.
_RELATED = {"parent_id": ("resource",), "owner_id": ("identity", "resource")}
_IDENTITY_FIELDS = ("identity_id", "identity_type", *_SHARED)


@router.get(
    "/resources", response_model=PageOf[ResourceItem], **documented(needs=Right.READ, query=ResourceQuery, etag=True)
)
async def list_resources(control: ControlDep, params: Annotated[ResourceQuery, query(ResourceQuery)]) -> Response:
    """List resources. Deleted ones are included unless you filter by time or status. With `Accept: text/csv`, all of
    them as a file."""
    inventory_filter = _inventory_filter(params, params.resource_type, params.status)
    return await _list(control, RESOURCES, params, inventory_filter, _RESOURCE_FIELDS)


@router.get(
    "/identities", response_model=PageOf[IdentityItem], **documented(needs=Right.READ, query=IdentityQuery, etag=True)
)
async def list_identities(control: ControlDep, params: Annotated[IdentityQuery, query(IdentityQuery)]) -> Response:
    """List identities. Deleted ones are included unless you filter by time. With `Accept: text/csv`, all of them as a
    file."""
    inventory_filter = _inventory_filter(params, params.identity_type, None)
    return await _list(control, IDENTITIES, params, inventory_filter, _IDENTITY_FIELDS)


@router.get(
    "/inventory/summary", response_model=InventorySummary, **documented(needs=Right.READ, query=TenantsQuery, etag=True)
)
async def summarise(control: ControlDep, params: Annotated[TenantsQuery, query(TenantsQuery)]) -> Response:
    """Count resources and identities by type."""

    def _read(connection: Connection, visible: EntityIds | None) -> Response:
        return json_response(
            {
                f"{kind.entity_type}_counts": counts(connection, kind, _of_kind(visible, kind))
                for kind in (RESOURCES, IDENTITIES)
            }
        )

    return await control.of_entities(params, _read)


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
    control: ControlRequest,
    kind: EntityKind,
    params: InventoryQuery,
    inventory_filter: InventoryFilter,
    fields: tuple[str, ...],
) -> Response:
    page, tenant = params.paging, control.tenant

    def _read(connection: Connection, visible: EntityIds | None) -> Response:
        wanted = replace(inventory_filter, ids=_of_kind(visible, kind))
        if control.wants_csv:
            rows = (_item(tenant, row, fields, visible) for row in every_listed(connection, kind, wanted))
            return csv_response(f"{kind.table.name}.csv", [*_TENANT, *fields, *_TIMES], rows)
        found, total = listed(connection, kind, wanted, offset=page.offset, limit=page.limit)
        items = [_item(tenant, row, fields, visible) for row in found]
        return page_response(items, total, page=params.page, page_size=params.page_size)

    return await control.of_entities(params, _read)


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
