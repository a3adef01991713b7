"""Tags."""

from typing import Annotated, Literal

from pydantic import Field

from chargeback.api.parameters import CommonParameters, DateRangeParameters, Id, SearchText, StrictModel, TagKey, Text
from chargeback.api.schemas.common import Instant, ResponseModel
from chargeback.store.control.tags import TagWrite
from chargeback.store.queries.selection import Selection, equal

#: A preview names so many entities at most; its counts are of all.
MAX_ENTITIES = 1000
_ENTITIES = f"With `dry_run` only: the counts by entity, of the first {MAX_ENTITIES:,}, by type and id."

EntityType = Literal["resource", "identity"]

KEY = "A letter or a digit, then at most 62 more of them or of `_.:-`; once per entity."
DRY_RUN = "Only tell what would change, and change nothing."
VALUE = "Any text of 1 to 255 characters."

#: Who created it; informational, because the service has no users.
Author = Annotated[Text, Field(description="Who created the tag.", examples=["alice"])]


class TagsQuery(CommonParameters):
    """Parameters of the list of tags."""

    entity_type: EntityType | None = Field(default=None, description="Only tags of resources, or only of identities.")
    tag_key: TagKey | None = Field(default=None, description="Only tags with this key.")


class TagValuesQuery(CommonParameters):
    """Parameters of the list of a key's values."""

    q: SearchText | None = Field(default=None, description="Part of the value, case-insensitive.")


class NewTag(StrictModel):
    """A tag to create."""

    tag_key: TagKey = Field(description=KEY, examples=["team"])
    tag_value: Text = Field(description=VALUE, examples=["payments"])
    created_by: Author = "api"


class NewValue(StrictModel):
    """The new value of a tag."""

    tag_value: Text = Field(description=VALUE, examples=["payments"])


class BulkItem(StrictModel):
    """One tag of a bulk write."""

    entity_type: EntityType
    entity_id: Id
    tag_key: TagKey
    tag_value: Text

    def write(self) -> TagWrite:
        """Return the tag as a write to the store."""
        return TagWrite(self.entity_type, self.entity_id, self.tag_key, self.tag_value)


class BulkTags(StrictModel):
    """Many tags to write, as if one after the other; all of them or none."""

    items: list[BulkItem] = Field(
        min_length=1, description="The tags, at least one; each has `entity_type`, `entity_id`, `tag_key`, `tag_value`."
    )
    created_by: Author = "api"
    override_existing: bool = Field(
        default=False,
        strict=True,
        description="Update tags whose key the entity already has; otherwise they are skipped.",
    )
    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)


class BulkPlace(StrictModel):
    """A tag by where it is."""

    entity_type: EntityType
    entity_id: Id
    tag_key: TagKey


class BulkRemoval(StrictModel):
    """Many tags to remove; all of them or none."""

    items: list[BulkPlace] = Field(
        min_length=1, description="The tags, at least one; each has `entity_type`, `entity_id`, `tag_key`."
    )
    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)


class BulkByFilter(DateRangeParameters):
    """One tag for every resource and identity in the chargebacks that match."""

    identity_id: Text | None = Field(default=None, description="Only chargebacks of this identity.")
    tag_key: TagKey = Field(description=KEY, examples=["team"])
    display_name: Text = Field(description="The tag's value.", examples=["payments"])
    created_by: Author = "api"
    override_existing: bool = Field(
        default=False,
        strict=True,
        description="Update tags whose key the entity already has; otherwise they are skipped.",
    )
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
