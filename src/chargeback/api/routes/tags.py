"""Tags of resources and identities, one by one and many at once."""

from itertools import islice
from typing import Annotated, Any, Final

from fastapi import Body, Path, Query
from sqlalchemy import Connection, RowMapping
from starlette.responses import Response

from chargeback.access.caller import Caller
from chargeback.access.rights import Right
from chargeback.api.csv_tables import csv_response
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import ALWAYS
from chargeback.api.parameters import MAX_ID_LENGTH, TAG_KEY
from chargeback.api.problems import Conflict, NotFound
from chargeback.api.responses import json_response, page_response
from chargeback.api.routing import CSV, Routes
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
    OnePeriod,
    TagItem,
    TagKeys,
    TagsQuery,
    TagValues,
    TagValuesQuery,
)
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.api.tenant_requests import Change, ChangeRequest, Entities
from chargeback.model.days import render_instant
from chargeback.store.control import tags as tag_store
from chargeback.store.control.given import EntityIds
from chargeback.store.queries.chargebacks import charged_entities

router = Routes(prefix="/tenants/{tenant_name}", tags=["Tags"])

_ENTITY = "/entities/{entity_type}/{entity_id:path}/tags"
_ONE = _ENTITY + "/{tag_key}"
_NO_TAG = {404: "The tenant does not exist, or the entity does not have this tag."}
_NO_ENTITY = {404: "The tenant or the entity does not exist."}

_WRITE = {409: "Two values of a tag would hold on the same days.", **_NO_ENTITY}
_CHANGE: Final[dict[str, Any]] = {
    "response_model": TagItem,
    "needs": Right.TAG,
    "answer": "The changed tag.",
    "problems": {
        409: "Two values of the tag would hold on the same days, or it has several and no date says which is meant.",
        **_NO_TAG,
    },
}
_ALL_PERIODS = OnePeriod()

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


@router.get(_ENTITY, response_model=list[TagItem], needs=Right.READ, problems=_NO_ENTITY)
def list_entity_tags(
    request: Entities,
    entity_type: EntityType,
    entity_id: EntityId,
    _params: Annotated[TenantsQuery, Query()],
) -> Response:
    """List the tags of one resource or identity by key and date."""
    connection = request.connection
    visible = request.visible
    _require_known(connection, [tag_store.TagWrite(entity_type, entity_id, "", "")], visible)
    return json_response([_item(row) for row in tag_store.of_entity(connection, entity_type, entity_id)])


@router.post(
    _ENTITY,
    status_code=201,
    response_model=TagItem,
    needs=Right.TAG,
    answer="The new tag.",
    problems={409: "The entity already has a tag with this key on some of these days.", **_NO_ENTITY},
)
def create_tag(
    request: Change,
    caller: CallerDep,
    entity_type: EntityType,
    entity_id: EntityId,
    new: Annotated[NewTag, Body()],
) -> Response:
    """Tag a resource or an identity of the inventory, which contains everything that was listed, billed or charged.

    `entity_id` has at most 512 characters, enough for a topic, `<cluster>:topic:<name>`.
    """
    tag = tag_store.TagWrite(entity_type, entity_id, new.tag_key, new.tag_value, new.during)
    visible = request.visible_entities()
    author = caller.signature(new.created_by)
    with request.writing() as connection:
        _require_known(connection, [tag], visible)
        row = tag_store.create(connection, request.tenant.tenant_id, tag, author, who=caller.name)
        if row is None:
            raise Conflict(f"The {entity_type} {entity_id} already has a tag {new.tag_key}; use PUT to change it.")
    return json_response(_item(row), status=201)


@router.put(_ONE, **_CHANGE)
@router.patch(_ONE, **_CHANGE)
def change_tag(
    request: Change,
    caller: CallerDep,
    entity_type: EntityType,
    entity_id: EntityId,
    tag_key: Key,
    new: Annotated[NewValue, Body()],
) -> Response:
    """Change the value of a tag.

    Without dates, the value changes for all days on which the tag holds; a key that has several values is refused. With
    `valid_from`, the former value ends on that day and is kept before it; rows have the value of their UTC day.
    """
    tag = tag_store.TagWrite(entity_type, entity_id, tag_key, new.tag_value, new.during)
    if not _sees(request.visible_entities(), tag.place):
        raise _no_tag(entity_type, entity_id, tag_key)
    with request.writing() as connection:
        row = tag_store.change(
            connection, request.tenant.tenant_id, tag, replace_periods=new.replace_periods, who=caller.name
        )
        if row is None:
            raise _no_tag(entity_type, entity_id, tag_key)
    return json_response(_item(row))


@router.delete(_ONE, needs=Right.TAG, answer="The tag was removed.", only=(*ALWAYS, 403), problems=_NO_TAG)
def remove_tag(
    request: Change,
    caller: CallerDep,
    entity_type: EntityType,
    entity_id: EntityId,
    tag_key: Key,
    params: Annotated[OnePeriod, Query()],
) -> Response:
    """Remove a tag with all its values, or, with `valid_from`, one of them."""
    place = (entity_type, entity_id, tag_key)
    if not _sees(request.visible_entities(), place):
        raise _no_tag(entity_type, entity_id, tag_key, params)
    with request.writing() as connection:
        if not tag_store.remove(connection, place, params.period, who=caller.name):
            raise _no_tag(entity_type, entity_id, tag_key, params)
    return Response(status_code=204)


@router.get("/tags", response_model=PageOf[TagItem], needs=Right.READ, files=CSV)
def list_tags(request: Entities, params: Annotated[TagsQuery, Query()]) -> Response:
    """List all tags by entity, key and date."""
    page = params.paging
    connection = request.connection
    visible = request.visible
    wanted = tag_store.TagFilter(params.entity_type, params.tag_key, visible)
    if request.wants_csv:
        rows = tag_store.every_listed(connection, wanted)
        return csv_response("tags.csv", tuple(TagItem.model_fields), map(_item, rows))
    found, total = tag_store.listed(connection, wanted, offset=page.offset, limit=page.limit)
    return page_response([_item(row) for row in found], total, page=params.page, page_size=params.page_size)


@router.get("/tags/keys", response_model=TagKeys, needs=Right.READ)
def list_keys(request: Entities, _params: Annotated[TenantsQuery, Query()]) -> Response:
    """List the tag keys in use."""
    return json_response({"keys": tag_store.keys(request.connection, request.visible)})


@router.get("/tags/keys/{tag_key}/values", response_model=TagValues, needs=Right.READ)
def list_values(request: Entities, tag_key: Key, params: Annotated[TagValuesQuery, Query()]) -> Response:
    """List the values in use of a key; the list is empty if the key is not in use."""
    connection = request.connection
    visible = request.visible
    wanted = tag_store.TagFilter(tag_key=tag_key, entities=visible)
    return json_response({"values": tag_store.values(connection, wanted, params.q)})


@router.post("/tags/bulk", response_model=BulkResult, needs=Right.TAG, problems=_WRITE)
def write_many(request: Change, caller: CallerDep, params: Annotated[BulkTags, Body()]) -> Response:
    """Write many tags in one transaction, in the given order. With `dry_run`, only report the changes."""
    return _write(request, caller, [item.write() for item in params.items], params)


@router.post("/tags/bulk-by-filter", response_model=BulkResult, needs=Right.TAG, problems=_WRITE)
def write_by_filter(request: Change, caller: CallerDep, params: Annotated[BulkByFilter, Body()]) -> Response:
    """Tag every resource and identity in the matching chargebacks, including `UNALLOCATED`.

    With `dry_run`, only report the changes."""
    selection = params.selection(request.tenant.lookback_days)
    with request.reader() as reader:
        entities = charged_entities(reader, selection)
    key, value, during = params.tag_key, params.display_name, params.during
    writes = [tag_store.TagWrite(*entity, key, value, during) for entity in entities]
    return _write(request, caller, writes, params)


@router.post("/tags/bulk-delete", response_model=BulkRemovalResult, needs=Right.TAG)
def remove_many(request: Change, caller: CallerDep, params: Annotated[BulkRemoval, Body()]) -> Response:
    """Remove many tags with all their values, all or none. Tags that do not exist are counted as missing."""
    places: set[_Place] = {(item.entity_type, item.entity_id, item.tag_key) for item in params.items}
    visible = request.visible_entities()
    seen = {place for place in places if _sees(visible, place)}
    with request.reading() if params.dry_run else request.writing() as connection:
        removed = tag_store.remove_many(connection, seen, dry_run=params.dry_run, who=caller.name)
    counts = _removals(places, removed)
    return json_response(counts | ({"entities": _by_entity(places, removed)} if params.dry_run else {}))


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


def _write(
    request: ChangeRequest, caller: Caller, writes: list[tag_store.TagWrite], params: BulkTags | BulkByFilter
) -> Response:
    rules = {"override": params.override_existing, "replace_periods": params.replace_periods}
    visible = request.visible_entities()
    author = caller.signature(params.created_by)
    if not params.dry_run:
        with request.writing() as connection:
            _require_known(connection, writes, visible)
            tenant_id = request.tenant.tenant_id
            done = tag_store.write_many(connection, tenant_id, writes, created_by=author, who=caller.name, **rules)
        return json_response(_counts(done))
    with request.reading() as connection:
        _require_known(connection, writes, visible)
        by_entity = tag_store.preview_writes(connection, writes, **rules)
    entities = [
        {"entity_type": entity_type, "entity_id": entity_id} | _counts(counts)
        for (entity_type, entity_id), counts in islice(by_entity.items(), MAX_ENTITIES)
    ]
    return json_response(_counts(sum(by_entity.values(), tag_store.BulkCounts())) | {"entities": entities})


def _counts(done: tag_store.BulkCounts) -> dict[str, Any]:
    return {"created_count": done.created, "updated_count": done.updated, "skipped_count": done.skipped}


def _sees(visible: EntityIds | None, place: _Place) -> bool:
    return visible is None or place[1] in visible[place[0]]


def _require_known(connection: Connection, writes: list[tag_store.TagWrite], visible: EntityIds | None) -> None:
    """Check that the inventory has all entities that are written to; what a caller does not see, it does not have."""
    hidden = {(tag.entity_type, tag.entity_id) for tag in writes if not _sees(visible, tag.place)}
    unknown = sorted(hidden.union(tag_store.unknown(connection, writes)))
    if unknown:
        named = ", ".join(f"{entity_type} {entity_id}" for entity_type, entity_id in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise NotFound(f"The inventory has no {named}{more}.")


def _no_tag(entity_type: EntityType, entity_id: EntityId, tag_key: Key, one: OnePeriod = _ALL_PERIODS) -> NotFound:
    which = "" if one.valid_from is None else f" with valid_from {one.valid_from}"
    return NotFound(f"The {entity_type} {entity_id} has no tag {tag_key[:80]!r}{which}.")


def _item(row: RowMapping) -> dict[str, Any]:
    return {**row, "created_at": render_instant(row["created_at"])} | {
        name: None if row[name] is None else row[name].isoformat() for name in ("valid_from", "valid_to")
    }
