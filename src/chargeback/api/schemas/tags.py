"""Tags."""

from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from chargeback.api.parameters import (
    CommonParameters,
    DateRangeParameters,
    Day,
    Id,
    Note,
    SearchText,
    StrictModel,
    TagKey,
    Text,
    day_if_valid,
)
from chargeback.api.schemas.common import Instant, ResponseModel
from chargeback.model.dated import Period
from chargeback.store.control.tags import TagWrite
from chargeback.store.queries.selection import Selection, equal

#: A preview names so many entities at most; its counts are of all.
MAX_ENTITIES = 1000
#: The most tags of one request; about as many fit into a body.
MAX_ITEMS = 100_000
_ENTITIES = f"With `dry_run` only: the counts by entity, of the first {MAX_ENTITIES:,}, by type and id."

EntityType = Literal["resource", "identity"]

KEY = "A letter or a digit, then at most 62 more of them or of `_.:-`; once per entity and day."
DRY_RUN = "Only tell what would change, and change nothing."
#: Stands for the value of a tag that has no first day.
NO_FIRST_DAY = "none"
VALUE = "Any text of 1 to 255 characters."
REPLACE = "Remove all other values of the key, whatever their dates; what is given here is then its only one."
OVERRIDE = (
    "Update tags whose key the entity already has, as PUT does; otherwise they are skipped, and a value with dates is "
    "added if it overlaps no other."
)
REPLACE_MANY = "With `override_existing`: remove all other values of these keys, whatever their dates."

#: Who created it; informational, because the service has no users.
Author = Annotated[Note, Field(description="Who created the tag.", examples=["alice"])]


class TagsQuery(CommonParameters):
    """Parameters of the list of tags."""

    entity_type: EntityType | None = Field(default=None, description="Only tags of resources, or only of identities.")
    tag_key: TagKey | None = Field(default=None, description="Only tags with this key.")


class TagValuesQuery(CommonParameters):
    """Parameters of the list of a key's values."""

    q: SearchText | None = Field(default=None, description="Part of the value, case-insensitive.")


class DatedBody(StrictModel):
    """A value that may hold on some days only."""

    valid_from: Day | None = Field(
        default=None, description="First UTC day on which the value holds. Default: no first day.", examples=[None]
    )
    valid_to: Day | None = Field(
        default=None,
        description="UTC day from which on the value holds no more. Default: no end.",
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
        """The days on which the value holds."""
        return Period(self.valid_from, self.valid_to)


class NewTag(DatedBody):
    """A tag to create. The values of a key of an entity must not overlap in time."""

    tag_key: TagKey = Field(description=KEY, examples=["team"])
    tag_value: Text = Field(description=VALUE, examples=["payments"])
    created_by: Author = "api"


class NewValue(DatedBody):
    """The new value of a tag.

    Without dates, the only value that the key has changes, and its dates stay. With dates, the value that begins on the
    same day changes, or a new one begins there and the former ends.
    """

    tag_value: Text = Field(description=VALUE, examples=["payments"])
    replace_periods: bool = Field(default=False, strict=True, description=REPLACE)


def _first_day(text: str) -> str:
    if text != NO_FIRST_DAY and day_if_valid(text) is None:
        raise ValueError(f"should be a date such as 2026-01-31, or {NO_FIRST_DAY}")
    return text


class OnePeriod(StrictModel):
    """Which values of a tag are meant."""

    valid_from: Annotated[str, AfterValidator(_first_day)] | None = Field(
        default=None,
        description="Only the value that begins on this UTC day, or, with `none`, the one without a first day. "
        "Default: all values.",
        examples=["2026-03-01"],
        json_schema_extra={"pattern": r"^(\d{4}-\d{2}-\d{2}|none)$"},
    )

    @property
    def period(self) -> Period | None:
        """The first day of the value that is meant; None means all."""
        if self.valid_from is None:
            return None
        return Period(day_if_valid(self.valid_from))


class BulkItem(DatedBody):
    """One tag of a bulk write."""

    entity_type: EntityType
    entity_id: Id
    tag_key: TagKey
    tag_value: Text

    def write(self) -> TagWrite:
        """Return the tag as a write to the store."""
        return TagWrite(self.entity_type, self.entity_id, self.tag_key, self.tag_value, self.during)


class BulkTags(StrictModel):
    """Many tags to write, as if one after the other; all of them or none."""

    items: list[BulkItem] = Field(
        min_length=1,
        max_length=MAX_ITEMS,
        description="The tags, at least one; each has `entity_type`, `entity_id`, `tag_key`, `tag_value`, and may have "
        "`valid_from` and `valid_to`.",
    )
    created_by: Author = "api"
    override_existing: bool = Field(default=False, strict=True, description=OVERRIDE)
    replace_periods: bool = Field(default=False, strict=True, description=REPLACE_MANY)
    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)


class BulkPlace(StrictModel):
    """A tag by where it is."""

    entity_type: EntityType
    entity_id: Id
    tag_key: TagKey


class BulkRemoval(StrictModel):
    """Many tags to remove; all of them or none."""

    items: list[BulkPlace] = Field(
        min_length=1,
        max_length=MAX_ITEMS,
        description="The tags, at least one; each has `entity_type`, `entity_id`, `tag_key`.",
    )
    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)


class BulkByFilter(DateRangeParameters, DatedBody):
    """One tag for every resource and identity in the chargebacks that match."""

    identity_id: Text | None = Field(default=None, description="Only chargebacks of this identity.")
    tag_key: TagKey = Field(description=KEY, examples=["team"])
    display_name: Text = Field(description="The tag's value.", examples=["payments"])
    created_by: Author = "api"
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
        description="UTC day from which on it holds no more; null if it has no end.", examples=[None]
    )


class BulkCounts(ResponseModel):
    """What became of the entries of a bulk write."""

    created_count: int
    updated_count: int
    skipped_count: int


class EntityCounts(BulkCounts):
    """What would become of the entries about one entity."""

    entity_type: EntityType
    entity_id: str = Field(examples=["lkc-abc123"])


class BulkResult(BulkCounts):
    """What a bulk write did, entry by entry, or, with `dry_run`, would do."""

    entities: list[EntityCounts] | None = Field(default=None, description=_ENTITIES)


class RemovalCounts(ResponseModel):
    """What became of the entries of a bulk removal."""

    deleted_count: int
    missing_count: int = Field(description="Entries for which there was no tag.")


class EntityRemovals(RemovalCounts):
    """What would become of the entries about one entity."""

    entity_type: EntityType
    entity_id: str = Field(examples=["lkc-abc123"])


class BulkRemovalResult(RemovalCounts):
    """What a bulk removal did, or, with `dry_run`, would do. A tag that is named twice counts once."""

    entities: list[EntityRemovals] | None = Field(default=None, description=_ENTITIES)


class TagKeys(ResponseModel):
    """Keys in use."""

    keys: list[str] = Field(examples=[["env", "team"]])


class TagValues(ResponseModel):
    """Values in use of one key."""

    values: list[str] = Field(examples=[["payments", "platform"]])
