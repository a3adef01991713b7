"""Tenants and the state of their days."""

from datetime import date
from typing import Literal

from pydantic import Field

from chargeback.api.parameters import CommonParameters
from chargeback.api.schemas.common import ResponseModel

TopicStatus = Literal["disabled", "enabled", "config_error"]


class TenantsQuery(CommonParameters):
    """Parameters of endpoints that mind none but the common ones."""


class TopicSettings(ResponseModel):
    """Whether costs are attributed to topics."""

    topic_attribution_status: TopicStatus
    topic_attribution_error: str | None = Field(
        description="The reason if the status is `config_error`; a caller with a scope is not told it."
    )


class TenantSummary(TopicSettings):
    """One tenant at a glance. The counts are null while its storage cannot be used."""

    tenant_name: str = Field(examples=["acme"])
    tenant_id: str = Field(examples=["acme"])
    ecosystem: str = Field(examples=["confluent_cloud"])
    dates_pending: int | None = Field(description="Days that are gathered, but not calculated yet.")
    dates_calculated: int | None
    last_calculated_date: date | None
    storage_error: str | None = Field(description="Why its storage is unavailable, or null.")


class DayFlags(ResponseModel):
    """How far one UTC day is."""

    tracking_date: date
    billing_gathered: bool
    resources_gathered: bool
    chargeback_calculated: bool
    topic_overlay_gathered: bool
    topic_attribution_calculated: bool


class IncompleteDay(ResponseModel):
    """A day that was calculated without something; it is calculated again once that can be had."""

    tracking_date: date
    reasons: list[str] = Field(
        description="The missing evidence, and why it is missing; a caller with a scope is told what is missing only.",
        examples=[["metrics: the source did not answer"]],
    )


class TenantStatus(TopicSettings):
    """One tenant, day by day."""

    tenant_name: str = Field(examples=["acme"])
    tenant_id: str = Field(examples=["acme"])
    ecosystem: str = Field(examples=["confluent_cloud"])
    states: list[DayFlags] = Field(description="The days that have a state, ascending.")
    incomplete: list[IncompleteDay] = Field(
        description="The days that were calculated with missing evidence, ascending."
    )
