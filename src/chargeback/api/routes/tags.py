"""Tags of resources and identities: single changes and bulk changes."""

from datetime import date
from itertools import islice
from typing import Annotated, Any, Final, Literal, Self

from fastapi import Body, Path, Query
from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.caller import Caller, Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.parameters import (
    MAX_ID_LENGTH,
    TAG_KEY,
    Author,
    CommonParameters,
    DateRangeParameters,
    Day,
    Id,
    Note,
    Restating,
    SearchText,
    StrictModel,
    TagKey,
    Text,
    day_if_valid,
)
from chargeback.api.problems import Conflict, NotFound
from chargeback.api.responses import json_response, table_response
from chargeback.api.routing import CSV, Routes
from chargeback.api.tenant_requests import Change, ChangeRequest, Entities
from chargeback.categories.document import RESERVED
from chargeback.model.dated import Period
from chargeback.reports.answers import Instant, PageOf, ResponseModel, left_out
from chargeback.store.control import tags as tag_store
from chargeback.store.control.given import EntityIds
from chargeback.store.control.tags import TagWrite
from chargeback.store.queries.chargebacks import charged_entities
from chargeback.store.queries.selection import Selection, equal

#: The maximum number of entities that a preview names; its counts include all.
MAX_ENTITIES = 1000
#: The maximum number of tags of one request; more would hardly fit into a body.
MAX_ITEMS = 100_000
_ENTITIES = f"With `dry_run` only: the counts by entity, of the first {MAX_ENTITIES:,}, by type and id."

EntityType = Literal["resource", "identity"]

KEY = "A letter or a digit, then at most 62 more of them or of `_.:-`; once per entity and day."
DRY_RUN = "Change nothing; only report the changes."
#: Selects the value of a tag that has no first day.
NO_FIRST_DAY = "none"
VALUE = "A text of 1 to 255 characters, not blank; not `UNTAGGED` or `UNALLOCATED`, which mean that there is no value."
REPLACE = "Remove all other values of the key, regardless of their dates; the given value is then the only one."
OVERRIDE = (
    "Update tags whose key the entity already has, as PUT does; otherwise they are skipped, and a value with dates is "
    "added if it overlaps no other."
)
REPLACE_MANY = "With `override_existing`: remove all other values of these keys, regardless of their dates."


def _not_reserved(value: str) -> str:
    if value in RESERVED:
        raise ValueError(f"{value} stands for {RESERVED[value]}; choose another value")
    return value


TagValue = Annotated[Note, AfterValidator(_not_reserved), Field(description=VALUE, examples=["payments"])]


class TagsQuery(CommonParameters):
    """Parameters of the list of tags."""

    entity_type: EntityType | None = Field(default=None, description="Only tags of resources, or only of identities.")
    tag_key: TagKey | None = Field(default=None, description="Only tags with this key.")


class TagValuesQuery(CommonParameters):
    """Parameters of the list of a key's values."""

    q: SearchText | None = Field(default=None, description="Part of the value, case-insensitive.")


class ChangingTags(Restating):
    """A change of tags."""

    reason: Note | None = Field(default=None, description="The reason; needed with `restate_closed`.", examples=[None])


class Dated(StrictModel):
    """A value that may be limited to some days."""

    valid_from: Day | None = Field(
        default=None, description="First UTC day on which the value holds. Default: no first day.", examples=[None]
    )
    valid_to: Day | None = Field(
        default=None,
        description="First UTC day on which the value no longer holds. Default: no end.",
        examples=[None],
    )

    @field_validator("valid_to")
    @classmethod
    def _after_start(cls, value: date | None, info: ValidationInfo) -> date | None:
        first = info.data.get("valid_from")
        if value is not None and first is not None and value <= first:
            raise ValueError(f"should be after valid_from, {first}")
        return value

    @property
    def during(self) -> Period:
        """Return the days on which the value holds."""
        return Period(self.valid_from, self.valid_to)


class NewTag(ChangingTags, Dated):
    """A tag to create. The values of a key of an entity must not overlap in time."""

    tag_key: TagKey = Field(description=KEY, examples=["team"])
    tag_value: TagValue
    created_by: Author = Field(default="api", description="Who created the tag.")


class NewValue(ChangingTags, Dated):
    """The new value of a tag.

    Without dates, the only value of the key changes, and its dates stay. With dates, the value that begins on the same
    day changes, or a new value begins on it and the former ends.
    """

    tag_value: TagValue
    replace_periods: bool = Field(default=False, strict=True, description=REPLACE)


def _first_day(text: str) -> str:
    if text != NO_FIRST_DAY and day_if_valid(text) is None:
        raise ValueError(f"should be a date such as 2026-01-31, or {NO_FIRST_DAY}")
    return text


class OnePeriod(ChangingTags):
    """The values of a tag to select."""

    valid_from: Annotated[str, AfterValidator(_first_day)] | None = Field(
        default=None,
        description="Only the value that begins on this UTC day, or, with `none`, the value without a first day. "
        "Default: all values.",
        examples=["2026-03-01"],
        json_schema_extra={"pattern": r"^(\d{4}-\d{2}-\d{2}|none)$"},
    )

    @property
    def period(self) -> Period | None:
        """Return the first day of the selected value; None selects all."""
        if self.valid_from is None:
            return None
        return Period(day_if_valid(self.valid_from))


class BulkItem(Dated):
    """One tag of a bulk write."""

    entity_type: EntityType
    entity_id: Id
    tag_key: TagKey
    tag_value: TagValue

    def write(self) -> TagWrite:
        """Return the tag as a write to the store."""
        return TagWrite(self.entity_type, self.entity_id, self.tag_key, self.tag_value, self.during)


class BulkTags(ChangingTags):
    """Many tags to write, in order; all of them or none."""

    items: list[BulkItem] = Field(
        min_length=1,
        max_length=MAX_ITEMS,
        description="The tags, at least one; each has `entity_type`, `entity_id`, `tag_key`, `tag_value`, and may have "
        "`valid_from` and `valid_to`.",
    )
    created_by: Author = Field(default="api", description="Who created the tags.")
    override_existing: bool = Field(default=False, strict=True, description=OVERRIDE)
    replace_periods: bool = Field(default=False, strict=True, description=REPLACE_MANY)
    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)


class BulkPlace(StrictModel):
    """The entity and the key of a tag."""

    entity_type: EntityType
    entity_id: Id
    tag_key: TagKey


class BulkRemoval(ChangingTags):
    """Many tags to remove; all of them or none."""

    items: list[BulkPlace] = Field(
        min_length=1,
        max_length=MAX_ITEMS,
        description="The tags, at least one; each has `entity_type`, `entity_id`, `tag_key`.",
    )
    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)


class BulkByFilter(ChangingTags, DateRangeParameters, Dated):
    """One tag for every resource and identity in the chargebacks that match."""

    identity_id: Text | None = Field(default=None, description="Only chargebacks of this identity.")
    tag_key: TagKey = Field(description=KEY, examples=["team"])
    display_name: TagValue = Field(description=f"The tag's value. {VALUE}")
    created_by: Author = Field(default="api", description="Who created the tags.")
    override_existing: bool = Field(default=False, strict=True, description=OVERRIDE)
    replace_periods: bool = Field(default=False, strict=True, description=REPLACE_MANY)
    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)

    def selection(self, lookback_days: int) -> Selection:
        """Return the selection of matching chargebacks."""
        named = {} if self.identity_id is None else {"identity_id": self.identity_id}
        return Selection(self.window(lookback_days), equal(**named))


class TagItem(ResponseModel):
    """A tag of a resource or an identity."""

    tag_id: int
    tenant_id: str = Field(examples=["acme"])
    entity_type: EntityType
    entity_id: str = Field(examples=["lkc-abc123"])
    tag_key: str = Field(examples=["team"])
    tag_value: str = Field(examples=["payments"])
    created_by: str = Field(examples=["alice"])
    created_at: Instant
    valid_from: date | None = Field(
        description="First UTC day on which the value holds; null if it has none.", examples=[None]
    )
    valid_to: date | None = Field(
        description="First UTC day on which it no longer holds; null if it has no end.", examples=[None]
    )


_TagKey = tuple[str, str, str]


class OfEntity(ResponseModel):
    """The type and the id of an entity."""

    entity_type: EntityType
    entity_id: str = Field(examples=["lkc-abc123"])


class EntryCounts(ResponseModel):
    """The results of the entries of a bulk write."""

    created_count: int
    updated_count: int
    skipped_count: int

    @classmethod
    def of(cls, done: tag_store.BulkCounts, **more: Any) -> Self:
        """Return the counts of a write; ``more`` are further fields."""
        return cls(created_count=done.created, updated_count=done.updated, skipped_count=done.skipped, **more)


class EntityCounts(EntryCounts, OfEntity):
    """The results that the entries about one entity would have."""


class BulkResult(EntryCounts):
    """The changes of a bulk write, or, with `dry_run`, those that it would make."""

    entities: list[EntityCounts] | None = left_out(_ENTITIES)


class RemovalCounts(ResponseModel):
    """The results of the entries of a bulk removal."""

    deleted_count: int
    missing_count: int = Field(description="Entries for which there was no tag.")

    @classmethod
    def of(cls, places: set[_TagKey], removed: set[_TagKey], **more: Any) -> Self:
        """Return the counts of a removal; ``more`` are further fields."""
        return cls(deleted_count=len(removed), missing_count=len(places - removed), **more)


class EntityRemovals(RemovalCounts, OfEntity):
    """The results that the entries about one entity would have."""


class BulkRemovalResult(RemovalCounts):
    """The changes of a bulk removal, or, with `dry_run`, those that it would make. A tag that is named twice counts
    once."""

    entities: list[EntityRemovals] | None = left_out(_ENTITIES)


class TagKeys(ResponseModel):
    """Keys in use."""

    keys: list[str] = Field(examples=[["env", "team"]])


class TagValues(ResponseModel):
    """Values in use of one key."""

    values: list[str] = Field(examples=[["payments", "platform"]])


router = Routes(prefix="/tenants/{tenant_name}", tags=["Tags"])

_ENTITY = "/entities/{entity_type}/{entity_id:path}/tags"
_ONE = _ENTITY + "/{tag_key}"
_NO_TAG = {404: "The tenant does not exist, or the entity does not have this tag."}
_NO_ENTITY = {404: "The tenant or the entity does not exist."}

_WRITE = {409: "Two values of a tag would hold on the same days.", **_NO_ENTITY}
_CHANGE: Final[dict[str, Any]] = {
    "needs": Right.TAG,
    "answer": "The changed tag.",
    "problems": {
        409: "Two values of the tag would hold on the same days, or it has several values and no date selects one.",
        **_NO_TAG,
    },
}
_ALL_PERIODS = OnePeriod()

EntityKind = Annotated[str, Path(description="`resource` or `identity`.", pattern="^(resource|identity)$")]
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
    entity_type: EntityKind,
    entity_id: EntityId,
    _params: Annotated[CommonParameters, Query()],
) -> Response:
    """List the tags of one resource or identity by key and date."""
    connection = request.connection
    visible = request.visible
    _require_known(connection, [tag_store.TagWrite(entity_type, entity_id, "", "")], visible)
    return json_response([TagItem(**row) for row in tag_store.of_entity(connection, entity_type, entity_id)])


@router.post(
    _ENTITY,
    status_code=201,
    needs=Right.TAG,
    answer="The new tag.",
    problems={409: "The entity already has a tag with this key on some of these days.", **_NO_ENTITY},
)
def create_tag(
    request: Change,
    caller: CallerDep,
    entity_type: EntityKind,
    entity_id: EntityId,
    new: Annotated[NewTag, Body()],
) -> TagItem:
    """Tag a resource or an identity of the inventory, which contains everything that was listed, billed or charged.

    `entity_id` has at most 512 characters, enough for a topic, `<cluster>:topic:<name>`.
    """
    tag = tag_store.TagWrite(entity_type, entity_id, new.tag_key, new.tag_value, new.during)
    visible = request.visible_entities()
    author = caller.signature(new.created_by)
    with request.changing(caller.name, new) as connection:
        _require_known(connection, [tag], visible)
        row = tag_store.create(connection, request.tenant.tenant_id, tag, author, who=caller.name)
        if row is None:
            raise Conflict(f"The {entity_type} {entity_id} already has a tag {new.tag_key}; use PUT to change it.")
    return TagItem(**row)


@router.put(_ONE, **_CHANGE)
@router.patch(_ONE, **_CHANGE)
def change_tag(
    request: Change,
    caller: CallerDep,
    entity_type: EntityKind,
    entity_id: EntityId,
    tag_key: Key,
    new: Annotated[NewValue, Body()],
) -> TagItem:
    """Change the value of a tag.

    Without dates, the value changes for all days on which the tag holds; a key that has several values is refused. With
    `valid_from`, the former value ends on that day and is kept before it; rows have the value of their UTC day.
    """
    tag = tag_store.TagWrite(entity_type, entity_id, tag_key, new.tag_value, new.during)
    if not _sees(request.visible_entities(), tag.entity_key):
        raise _no_tag(entity_type, entity_id, tag_key)
    with request.changing(caller.name, new) as connection:
        row = tag_store.change(
            connection, request.tenant.tenant_id, tag, replace_periods=new.replace_periods, who=caller.name
        )
        if row is None:
            raise _no_tag(entity_type, entity_id, tag_key)
    return TagItem(**row)


@router.delete(_ONE, needs=Right.TAG, answer="The tag was removed.", only=(*COMMON_STATUSES, 403), problems=_NO_TAG)
def remove_tag(
    request: Change,
    caller: CallerDep,
    entity_type: EntityKind,
    entity_id: EntityId,
    tag_key: Key,
    params: Annotated[OnePeriod, Query()],
) -> Response:
    """Remove a tag with all its values, or, with `valid_from`, one of them."""
    place = (entity_type, entity_id, tag_key)
    if not _sees(request.visible_entities(), place):
        raise _no_tag(entity_type, entity_id, tag_key, params)
    with request.changing(caller.name, params) as connection:
        if not tag_store.remove(connection, place, params.period, who=caller.name):
            raise _no_tag(entity_type, entity_id, tag_key, params)
    return Response(status_code=204)


@router.get("/tags", needs=Right.READ, files=CSV)
def list_tags(request: Entities, params: Annotated[TagsQuery, Query()]) -> PageOf[TagItem] | Response:
    """List all tags by entity, key and date."""
    page = params.paging
    connection = request.connection
    wanted = tag_store.TagMatch(params.entity_type, params.tag_key, request.visible)
    if request.wants_csv:
        rows = tag_store.every_listed(connection, wanted)
        columns = TagItem.columns()
        return table_response("tags.csv", columns, (TagItem(**row) for row in rows))
    found, total = tag_store.listed(connection, wanted, offset=page.offset, limit=page.limit)
    return PageOf[TagItem].of([TagItem(**row) for row in found], total, page)


@router.get("/tags/keys", needs=Right.READ)
def list_keys(request: Entities, _params: Annotated[CommonParameters, Query()]) -> TagKeys:
    """List the tag keys in use."""
    return TagKeys(keys=tag_store.keys(request.connection, request.visible))


@router.get("/tags/keys/{tag_key}/values", needs=Right.READ)
def list_values(request: Entities, tag_key: Key, params: Annotated[TagValuesQuery, Query()]) -> TagValues:
    """List the values in use of a key; the list is empty if the key is not in use."""
    wanted = tag_store.TagMatch(tag_key=tag_key, entities=request.visible)
    return TagValues(values=tag_store.values(request.connection, wanted, params.q))


@router.post("/tags/bulk", needs=Right.TAG, problems=_WRITE)
def write_many(request: Change, caller: CallerDep, params: Annotated[BulkTags, Body()]) -> BulkResult:
    """Write many tags in one transaction, in the given order. With `dry_run`, only report the changes."""
    return _write(request, caller, [item.write() for item in params.items], params)


@router.post("/tags/bulk-by-filter", needs=Right.TAG, problems=_WRITE)
def write_by_filter(request: Change, caller: CallerDep, params: Annotated[BulkByFilter, Body()]) -> BulkResult:
    """Tag every resource and identity in the matching chargebacks, including `UNALLOCATED`.

    With `dry_run`, only report the changes."""
    selection = params.selection(request.tenant.lookback_days)
    with request.facts_reader() as reader:
        entities = charged_entities(reader, selection)
    key, value, during = params.tag_key, params.display_name, params.during
    writes = [tag_store.TagWrite(*entity, key, value, during) for entity in entities]
    return _write(request, caller, writes, params)


@router.post("/tags/bulk-delete", needs=Right.TAG)
def remove_many(request: Change, caller: CallerDep, params: Annotated[BulkRemoval, Body()]) -> BulkRemovalResult:
    """Remove many tags with all their values, all or none. Tags that do not exist are counted as missing."""
    places: set[_TagKey] = {(item.entity_type, item.entity_id, item.tag_key) for item in params.items}
    visible = request.visible_entities()
    seen = {place for place in places if _sees(visible, place)}
    with request.reading() if params.dry_run else request.changing(caller.name, params) as connection:
        removed = tag_store.remove_many(connection, seen, dry_run=params.dry_run, who=caller.name)
    entities = _by_entity(places, removed) if params.dry_run else None
    return BulkRemovalResult.of(places, removed, entities=entities)


def _by_entity(places: set[_TagKey], removed: set[_TagKey]) -> list[EntityRemovals]:
    named: dict[tuple[str, str], set[_TagKey]] = {}
    for place in sorted(places):
        named.setdefault(place[:2], set()).add(place)
    return [
        EntityRemovals.of(some, some & removed, entity_type=entity_type, entity_id=entity_id)
        for (entity_type, entity_id), some in islice(named.items(), MAX_ENTITIES)
    ]


def _write(
    request: ChangeRequest, caller: Caller, writes: list[tag_store.TagWrite], params: BulkTags | BulkByFilter
) -> BulkResult:
    rules = {"override": params.override_existing, "replace_periods": params.replace_periods}
    visible = request.visible_entities()
    author = caller.signature(params.created_by)
    if not params.dry_run:
        with request.changing(caller.name, params) as connection:
            _require_known(connection, writes, visible)
            tenant_id = request.tenant.tenant_id
            done = tag_store.write_many(connection, tenant_id, writes, created_by=author, who=caller.name, **rules)
        return BulkResult.of(done)
    with request.reading() as connection:
        _require_known(connection, writes, visible)
        by_entity = tag_store.preview_writes(connection, writes, **rules)
    entities = [
        EntityCounts.of(counts, entity_type=entity_type, entity_id=entity_id)
        for (entity_type, entity_id), counts in islice(by_entity.items(), MAX_ENTITIES)
    ]
    return BulkResult.of(sum(by_entity.values(), tag_store.BulkCounts()), entities=entities)


def _sees(visible: EntityIds | None, place: _TagKey) -> bool:
    return visible is None or place[1] in visible[place[0]]


def _require_known(connection: Connection, writes: list[tag_store.TagWrite], visible: EntityIds | None) -> None:
    """Check that all tagged entities are in the inventory and visible to the caller."""
    hidden = {(tag.entity_type, tag.entity_id) for tag in writes if not _sees(visible, tag.entity_key)}
    unknown = sorted(hidden.union(tag_store.unknown(connection, writes)))
    if unknown:
        named = ", ".join(f"{entity_type} {entity_id}" for entity_type, entity_id in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise NotFound(f"The inventory has no {named}{more}.")


def _no_tag(entity_type: EntityKind, entity_id: EntityId, tag_key: Key, one: OnePeriod = _ALL_PERIODS) -> NotFound:
    which = "" if one.valid_from is None else f" with valid_from {one.valid_from}"
    return NotFound(f"The {entity_type} {entity_id} has no tag {tag_key[:80]!r}{which}.")
