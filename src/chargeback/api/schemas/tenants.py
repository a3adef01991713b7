"""Tenants and the state of their days."""

from datetime import date
from typing import Literal

from pydantic import Field

from chargeback.api.parameters import Common
from chargeback.api.schemas.common import Answer

TopicStatus = Literal["disabled", "enabled", "config_error"]


class TenantsQuery(Common):
    """Parameters of endpoints that mind none but the common ones."""


class TopicSettings(Answer):
    """Whether costs are attributed to topics."""

    topic_attribution_status: TopicStatus
    topic_attribution_error: str | None = Field(description="Why, when the status is `config_error`.")


class TenantSummary(TopicSettings):
    """One tenant at a glance. The counts are null while its storage cannot be used."""

    tenant_name: str = Field(examples=["acme"])
    tenant_id: str = Field(examples=["acme"])
    ecosystem: str = Field(examples=["confluent_cloud"])
    dates_pending: int | None = Field(description="Days gathered but not calculated yet.")
    dates_calculated: int | None
    last_calculated_date: date | None


class DayFlags(Answer):
    """How far one UTC day is."""

    tracking_date: date
    billing_gathered: bool
    resources_gathered: bool
    chargeback_calculated: bool
    topic_overlay_gathered: bool
    topic_attribution_calculated: bool


class TenantStatus(TopicSettings):
    """One tenant, day by day."""

    tenant_name: str = Field(examples=["acme"])
    tenant_id: str = Field(examples=["acme"])
    ecosystem: str = Field(examples=["confluent_cloud"])
    states: list[DayFlags] = Field(description="The days that were ever handled, ascending.")
