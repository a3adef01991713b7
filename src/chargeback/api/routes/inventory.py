"""Resources and identities."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Query
from pydantic import Field
from sqlalchemy import RowMapping
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.parameters import CommonParameters, SearchText, TagKey, Text, When, instant_if_valid, tag_pair
from chargeback.api.problems import InvalidParameter
from chargeback.api.responses import table_response
from chargeback.api.routing import CSV, Routes
from chargeback.api.tenant_requests import Entities, EntitiesRequest
from chargeback.reports.answers import Instant, Metadata, PageOf, ResponseModel
from chargeback.reports.tenant_view import TenantView
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
from chargeback.store.queries.paging import Page

Status = Literal["active", "deleted"]


class InventoryQuery(CommonParameters):
    """Parameters that both lists of the inventory have."""

    active_at: When | None = Field(default=None, description="Only entities that existed at this time.")
    period_start: When | None = Field(
        default=None, description="With `period_end`: only entities that existed in this period."
    )
    period_end: When | None = Field(default=None, description="End of the period, exclusive.")
    search: SearchText | None = Field(
        default=None, description="Part of the id or the display name, case-insensitive. Ignored if a time is given."
    )
    sort_by: SearchText | None = Field(
        default=None,
        description="The id, `display_name`, the type or, for resources, `status`; any other value means the id. "
        "Ignored if a time is given.",
    )
    sort_order: Literal["asc", "desc"] = Field(default="asc", description="Sort direction. Ignored if a time is given.")
    tag_key: TagKey | None = Field(default=None, description="Only entities with this tag. Ignored if a time is given.")
    tag_value: Text | None = Field(
        default=None, description="Only entities on which this tag has this value; requires `tag_key`."
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that there is either a time or a complete period, and the tag's value with its key."""
        errors = super().cross_checks(raw, now) + tag_pair(raw)
        half = [name for name in ("period_start", "period_end") if raw.get(name) is not None]
        if raw.get("active_at") is not None and half:
            errors.append(InvalidParameter("active_at", "cannot be combined with period_start and period_end"))
        if len(half) == 1:
            errors.append(InvalidParameter(half[0], "requires the other end of the period as well"))
        start, end = instant_if_valid(raw.get("period_start")), instant_if_valid(raw.get("period_end"))
        if start is not None and end is not None and start > end:
            errors.append(InvalidParameter("period_start", "should not be after period_end"))
        return errors

    @property
    def period(self) -> tuple[datetime, datetime] | None:
        """Return the requested period; a point in time is a period without length."""
        if self.active_at is not None:
            return self.active_at, self.active_at
        if self.period_start is not None and self.period_end is not None:
            return self.period_start, self.period_end
        return None


class ResourceQuery(InventoryQuery):
    """Parameters of the list of resources."""

    resource_type: Text | None = Field(default=None, description="Only this type.")
    status: Status | None = Field(default=None, description="Only existing resources, or only deleted ones.")


class IdentityQuery(InventoryQuery):
    """Parameters of the list of identities."""

    identity_type: Text | None = Field(default=None, description="Only this type.")


class ResourceItem(ResponseModel):
    """Something that can be billed."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    resource_id: str = Field(examples=["lkc-abc123"])
    resource_type: str = Field(examples=["kafka_cluster"])
    parent_id: str | None = Field(description="The resource that contains it.", examples=["env-abc12"])
    owner_id: str | None = Field(description="The identity that pays if a policy uses `owner`.")
    status: Status
    display_name: str | None = Field(examples=["orders"])
    metadata: Metadata
    created_at: Instant | None
    deleted_at: Instant | None
    last_seen_at: Instant


class IdentityItem(ResponseModel):
    """An identity that can be charged."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    identity_id: str = Field(examples=["sa-123abc"])
    identity_type: str = Field(examples=["service_account"])
    display_name: str | None = Field(examples=["orders"])
    metadata: Metadata
    created_at: Instant | None
    deleted_at: Instant | None
    last_seen_at: Instant


class Counts(ResponseModel):
    """The number of entities of one type."""

    total: int
    active: int
    deleted: int


class InventorySummary(ResponseModel):
    """Count resources and identities by type."""

    resource_counts: dict[str, Counts]
    identity_counts: dict[str, Counts]


router = Routes(prefix="/tenants/{tenant_name}", tags=["Inventory"])

#: The fields of the tenant in responses.
_TENANT = {"ecosystem", "tenant_id"}
#: The fields that name another entity, and its type.
_RELATED = {"parent_id": ("resource",), "owner_id": ("identity", "resource")}

Item = TypeVar("Item", ResourceItem, IdentityItem)


@router.get("/resources", needs=Right.READ, files=CSV)
def list_resources(request: Entities, params: Annotated[ResourceQuery, Query()]) -> PageOf[ResourceItem] | Response:
    """List resources. Deleted ones are included unless you filter by time or status."""
    wanted = _inventory_filter(params, params.resource_type, params.status)
    return _list(request, RESOURCES, wanted, params.paging, ResourceItem, PageOf[ResourceItem])


@router.get("/identities", needs=Right.READ, files=CSV)
def list_identities(request: Entities, params: Annotated[IdentityQuery, Query()]) -> PageOf[IdentityItem] | Response:
    """List identities. Deleted ones are included unless you filter by time."""
    wanted = _inventory_filter(params, params.identity_type, None)
    return _list(request, IDENTITIES, wanted, params.paging, IdentityItem, PageOf[IdentityItem])


@router.get("/inventory/summary", needs=Right.READ)
def summarise(request: Entities, _params: Annotated[CommonParameters, Query()]) -> InventorySummary:
    """Count resources and identities by type."""
    return InventorySummary(resource_counts=_counts(request, RESOURCES), identity_counts=_counts(request, IDENTITIES))


def _counts(request: EntitiesRequest, kind: EntityKind) -> dict[str, Counts]:
    found = counts(request.connection, kind, _of_kind(request.visible, kind))
    return {name: Counts(**each) for name, each in found.items()}


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
    inventory_filter: InventoryFilter,
    page: Page,
    model: type[Item],
    answer: type[PageOf[Item]],
) -> PageOf[Item] | Response:
    tenant, connection, visible = request.tenant, request.connection, request.visible
    wanted = replace(inventory_filter, ids=_of_kind(visible, kind))
    if request.wants_csv:
        items = (_item(model, tenant, row, visible) for row in every_listed(connection, kind, wanted))
        return table_response(f"{kind.table.name}.csv", model.columns(), items)
    found, total = listed(connection, kind, wanted, offset=page.offset, limit=page.limit)
    return answer.of([_item(model, tenant, row, visible) for row in found], total, page)


def _of_kind(visible: EntityIds | None, kind: EntityKind) -> Collection[str] | None:
    return None if visible is None else visible[kind.entity_type]


def _item(model: type[Item], tenant: TenantView, row: RowMapping, visible: EntityIds | None) -> Item:
    """Return an entity for a response, without the entities it belongs to that the caller may not see."""
    item = {name: row[name] for name in model.model_fields if name not in _TENANT}
    for name, kinds in _RELATED.items():
        if visible is not None and name in item and not any(item[name] in visible[kind] for kind in kinds):
            item[name] = None
    return model(ecosystem=tenant.ecosystem, tenant_id=tenant.tenant_id, **item)
