"""Health and readiness."""

from datetime import date
from typing import Literal

from pydantic import Field

from chargeback.api.schemas.common import Instant, ResponseModel
from chargeback.api.schemas.tenants import TopicSettings


class Health(ResponseModel):
    """The process is alive."""

    status: Literal["ok"]
    version: str = Field(examples=["0.1.0"])


class TenantReadiness(TopicSettings):
    """Whether one tenant can be asked, and what its pipeline does."""

    tenant_name: str = Field(examples=["acme"])
    tables_ready: bool = Field(description="Whether its control database has the current schema.")
    has_data: bool = Field(description="Whether it has any chargeback rows.")
    pipeline_running: bool
    pipeline_stage: Literal["gathering", "calculating", "topic_overlay", "emitting", "retention"] | None
    pipeline_current_date: date | None
    last_run_status: (
        Literal["running", "completed", "completed_with_errors", "failed", "timed_out", "interrupted"] | None
    )
    last_run_at: Instant | None
    permanent_failure: str | None = Field(
        description="Why the tenant is suspended, and how to resume it; null if it is not suspended. A caller with a "
        "scope is told that it is, and not why."
    )
    storage_error: str | None = Field(
        description="Why its storage is unavailable, or null. It is retried automatically."
    )


class Readiness(ResponseModel):
    """What can be asked of the service now. It describes; to probe the process, ask `/health`."""

    status: Literal["ready", "initializing", "no_data", "error"]
    version: str = Field(examples=["0.1.0"])
    mode: Literal["api", "worker", "both"]
    tenants: list[TenantReadiness]
