"""Tags of resources and identities, one by one and many at once."""

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy import Connection, RowMapping
from starlette.responses import Response

from chargeback.api.conditional import ControlDep
from chargeback.api.csv_tables import csv_response
from chargeback.api.dependencies import ContextDep, TenantDep
from chargeback.api.documentation import ALWAYS, documented
from chargeback.api.parameters import MAX_ID_LENGTH, TAG_KEY, body, no_parameters, query
from chargeback.api.problems import Conflict, NotFound
from chargeback.api.responses import json_response, page_response
from chargeback.api.schemas.common import PageOf
from chargeback.api.schemas.tags import (
    MAX_ENTITIES,
    BulkByFilter,
    BulkRemoval,
    BulkRemovalResult,
    BulkResult,
    BulkTags,
    NewTag,
    NewValue,
    TagItem,
    TagKeys,
    TagsQuery,
    TagValues,
    TagValuesQuery,
)
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.model.days import render_instant
from chargeback.service.executor import RequestContext
from chargeback.service.tenant_view import TenantView
from chargeback.store.control import tags as tag_store
from chargeback.store.queries.charged_entities import charged_entities

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Tags"])

_ENTITY = "/entities/{entity_type}/{entity_id:path}/tags"
_ONE = _ENTITY + "/{tag_key}"
_NO_TAG = {404: "The tenant does not exist, or the entity does not have this tag."}
_NO_ENTITY = {404: "The tenant or the entity does not exist."}

EntityType = Annotated[str, Path(description="`resource` or `identity`.", pattern="^(resource|identity)$")]
EntityId = Annotated[
    str,
    Path(
        description=f"Id of the entity, at most {MAX_ID_LENGTH} characters; it may contain slashes.",
        max_length=MAX_ID_LENGTH,
        pattern=r"^[^\x00]+$",
    ),
]
Key = Annotated[str, Path(description="Key of the tag.", pattern=TAG_KEY, examples=["team"])]


@router.get(_ENTITY, response_model=list[TagItem], **documented(query=TenantsQuery, problems=_NO_ENTITY, etag=True))
async def list_entity_tags(
    control: ControlDep,
    entity_type: EntityType,
    entity_id: EntityId,
    params: Annotated[TenantsQuery, query(TenantsQuery)],
) -> Response:
    """List the tags of one resource or identity by key."""

    def _read(connection: Connection) -> Response:
        _require_known(connection, [tag_store.TagWrite(entity_type, entity_id, "", "")])
        return json_response([_item(row) for row in tag_store.of_entity(connection, entity_type, entity_id)])

    return await control.of_entities(params, _read)


@router.post(
    _ENTITY,
    status_code=201,
    response_model=TagItem,
    **documented(
        body=NewTag, answer="The new tag.", problems={409: "The entity already has a tag with this key.", **_NO_ENTITY}
    ),
)
async def create_tag(
    tenant: TenantDep,
    context: ContextDep,
    entity_type: EntityType,
    entity_id: EntityId,
    new: Annotated[NewTag, body(NewTag)],
) -> Response:
    """Tag a resource or an identity of the inventory, which contains everything that was listed, billed or charged.

    `entity_id` has at most 512 characters, enough for a topic, `<cluster>:topic:<name>`.
    """
    tag = tag_store.TagWrite(entity_type, entity_id, new.tag_key, new.tag_value)

    def _create(connection: Connection) -> dict[str, Any]:
        _require_known(connection, [tag])
        row = tag_store.create(connection, tenant.tenant_id, tag, new.created_by)
        if row is None:
            raise Conflict(f"The {entity_type} {entity_id} already has a tag {new.tag_key}; use PUT to change it.")
        return _item(row)

    return json_response(await context.write_control(tenant, _create), status=201)


@router.put(_ONE, response_model=TagItem, **documented(body=NewValue, answer="The changed tag.", problems=_NO_TAG))
@router.patch(_ONE, response_model=TagItem, **documented(body=NewValue, answer="The changed tag.", problems=_NO_TAG))
async def change_tag(
    tenant: TenantDep,
    context: ContextDep,
    entity_type: EntityType,
    entity_id: EntityId,
    tag_key: Key,
    new: Annotated[NewValue, body(NewValue)],
) -> Response:
    """Change the value of a tag."""
    tag = tag_store.TagWrite(entity_type, entity_id, tag_key, new.tag_value)
    row = await context.write_control(tenant, lambda connection: tag_store.change(connection, tag))
    if row is None:
        raise _no_tag(entity_type, entity_id, tag_key)
    return json_response(_item(row))


@router.delete(
    _ONE,
    status_code=204,
    response_class=Response,
    **documented(answer="The tag was removed.", only=(*ALWAYS, 403), problems=_NO_TAG),
    dependencies=[no_parameters()],
)
async def remove_tag(
    tenant: TenantDep, context: ContextDep, entity_type: EntityType, entity_id: EntityId, tag_key: Key
) -> Response:
    """Remove a tag."""
    place = (entity_type, entity_id, tag_key)
    if not await context.write_control(tenant, lambda connection: tag_store.remove(connection, place)):
        raise _no_tag(entity_type, entity_id, tag_key)
    return Response(status_code=204)


@router.get("/tags", response_model=PageOf[TagItem], **documented(query=TagsQuery, etag=True))
async def list_tags(control: ControlDep, params: Annotated[TagsQuery, query(TagsQuery)]) -> Response:
    """List all tags by entity and key; with `Accept: text/csv`, as a file."""
    page, where = params.paging, {"entity_type": params.entity_type, "tag_key": params.tag_key}

    def _read(connection: Connection) -> Response:
        if control.wants_csv:
            rows = tag_store.every_listed(connection, **where)
            return csv_response("tags.csv", tuple(TagItem.model_fields), map(_item, rows))
        found, total = tag_store.listed(connection, **where, offset=page.offset, limit=page.limit)
        return page_response([_item(row) for row in found], total, page=params.page, page_size=params.page_size)

    return await control.of_entities(params, _read)


@router.get("/tags/keys", response_model=TagKeys, **documented(query=TenantsQuery, etag=True))
async def list_keys(control: ControlDep, params: Annotated[TenantsQuery, query(TenantsQuery)]) -> Response:
    """List the tag keys in use."""
    return await control.of_entities(params, lambda connection: json_response({"keys": tag_store.keys(connection)}))


@router.get("/tags/keys/{tag_key}/values", response_model=TagValues, **documented(query=TagValuesQuery, etag=True))
async def list_values(
    control: ControlDep, tag_key: Key, params: Annotated[TagValuesQuery, query(TagValuesQuery)]
) -> Response:
    """List the values in use of a key; the list is empty if the key is not in use."""

    def _read(connection: Connection) -> Response:
        return json_response({"values": tag_store.values(connection, tag_key, params.q)})

    return await control.of_entities(params, _read)


@router.post("/tags/bulk", response_model=BulkResult, **documented(body=BulkTags, problems=_NO_ENTITY))
async def write_many(tenant: TenantDep, context: ContextDep, params: Annotated[BulkTags, body(BulkTags)]) -> Response:
    """Write many tags in one transaction, in the given order. With `dry_run`, only report the changes."""
    return await _write(tenant, context, [item.write() for item in params.items], params)


@router.post("/tags/bulk-by-filter", response_model=BulkResult, **documented(body=BulkByFilter, problems=_NO_ENTITY))
async def write_by_filter(
    tenant: TenantDep, context: ContextDep, params: Annotated[BulkByFilter, body(BulkByFilter)]
) -> Response:
    """Tag every resource and identity in the matching chargebacks, including `UNALLOCATED`.

    With `dry_run`, only report the changes."""
    selection = params.selection(tenant.lookback_days)
    entities = await context.query_facts(tenant, lambda reader: charged_entities(reader, selection))
    writes = [tag_store.TagWrite(*entity, params.tag_key, params.display_name) for entity in entities]
    return await _write(tenant, context, writes, params)


@router.post("/tags/bulk-delete", response_model=BulkRemovalResult, **documented(body=BulkRemoval))
async def remove_many(
    tenant: TenantDep, context: ContextDep, params: Annotated[BulkRemoval, body(BulkRemoval)]
) -> Response:
    """Remove many tags, all or none. Tags that do not exist are counted as missing."""
    places: set[_Place] = {(item.entity_type, item.entity_id, item.tag_key) for item in params.items}

    def _remove(connection: Connection) -> Response:
        removed = tag_store.remove_many(connection, places, dry_run=params.dry_run)
        counts = _removals(places, removed)
        return json_response(counts | ({"entities": _by_entity(places, removed)} if params.dry_run else {}))

    access = context.read_control if params.dry_run else context.write_control
    return await access(tenant, _remove)


_Place = tuple[str, str, str]


def _removals(places: set[_Place], removed: set[_Place]) -> dict[str, Any]:
    return {"deleted_count": len(removed), "missing_count": len(places - removed)}


def _by_entity(places: set[_Place], removed: set[_Place]) -> list[dict[str, Any]]:
    named: dict[tuple[str, str], set[_Place]] = {}
    for place in sorted(places):
        named.setdefault(place[:2], set()).add(place)
    return [
        {"entity_type": entity_type, "entity_id": entity_id} | _removals(some, some & removed)
        for (entity_type, entity_id), some in islice(named.items(), MAX_ENTITIES)
    ]


async def _write(
    tenant: TenantView, context: RequestContext, writes: list[tag_store.TagWrite], params: BulkTags | BulkByFilter
) -> Response:
    override = params.override_existing

    def _preview(connection: Connection) -> dict[str, Any]:
        _require_known(connection, writes)
        by_entity = tag_store.preview_writes(connection, writes, override=override)
        entities = [
            {"entity_type": entity_type, "entity_id": entity_id} | _counts(counts)
            for (entity_type, entity_id), counts in islice(by_entity.items(), MAX_ENTITIES)
        ]
        return _counts(sum(by_entity.values(), tag_store.BulkCounts())) | {"entities": entities}

    def _all(connection: Connection) -> dict[str, Any]:
        _require_known(connection, writes)
        return _counts(
            tag_store.write_many(connection, tenant.tenant_id, writes, created_by=params.created_by, override=override)
        )

    if params.dry_run:
        return json_response(await context.read_control(tenant, _preview))
    return json_response(await context.write_control(tenant, _all))


def _counts(done: tag_store.BulkCounts) -> dict[str, Any]:
    return {"created_count": done.created, "updated_count": done.updated, "skipped_count": done.skipped}


def _require_known(connection: Connection, writes: list[tag_store.TagWrite]) -> None:
    unknown = tag_store.unknown(connection, writes)
    if unknown:
        named = ", ".join(f"{entity_type} {entity_id}" for entity_type, entity_id in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise NotFound(f"The inventory has no {named}{more}.")


def _no_tag(entity_type: EntityType, entity_id: EntityId, tag_key: Key) -> NotFound:
    return NotFound(f"The {entity_type} {entity_id} has no tag {tag_key[:80]!r}.")


def _item(row: RowMapping) -> dict[str, Any]:
    return {**row, "created_at": render_instant(row["created_at"])}
