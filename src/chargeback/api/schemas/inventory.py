"""Resources and identities."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from chargeback.api.parameters import CommonParameters, SearchText, TagKey, Text, When, instant_if_valid, tag_pair
from chargeback.api.problems import InvalidParameter
from chargeback.api.schemas.common import Instant, Metadata, ResponseModel

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


class Entity(ResponseModel):
    """What resources and identities have in common."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    display_name: str | None = Field(examples=["orders"])
    created_at: Instant | None
    deleted_at: Instant | None
    last_seen_at: Instant
    metadata: Metadata


class ResourceItem(Entity):
    """Something that can be billed."""

    resource_id: str = Field(examples=["lkc-abc123"])
    resource_type: str = Field(examples=["kafka_cluster"])
    parent_id: str | None = Field(description="The resource that contains it.", examples=["env-abc12"])
    owner_id: str | None = Field(description="The identity that pays if a policy uses `owner`.")
    status: Status


class IdentityItem(Entity):
    """Somebody who can be charged."""

    identity_id: str = Field(examples=["sa-123abc"])
    identity_type: str = Field(examples=["service_account"])


class Counts(ResponseModel):
    """How many there are of one type."""

    total: int
    active: int
    deleted: int


class InventorySummary(ResponseModel):
    """Count resources and identities by type."""

    resource_counts: dict[str, Counts]
    identity_counts: dict[str, Counts]
