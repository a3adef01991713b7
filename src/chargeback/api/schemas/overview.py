"""A tenant in one answer, and its runs."""

from datetime import date
from typing import Annotated

from pydantic import Field

from chargeback.api.parameters import CommonParameters
from chargeback.api.schemas.common import Instant, ResponseModel
from chargeback.api.schemas.tenants import TopicSettings

#: A share of a whole, from 0 to 1.
Share = Annotated[str, Field(pattern=r"^-?\d+\.\d{4}$", examples=["0.8125"])]


class RunsQuery(CommonParameters):
    """Parameters of the list of runs."""

    limit: int = Field(default=20, ge=1, le=100, description="How many runs, the newest first.")


class TagKeyCoverage(ResponseModel):
    """A tag key in use."""

    key: str = Field(examples=["team"])
    coverage: Share | None = Field(
        description="The share of the cost of the last 30 calculated days that has it; null without any cost."
    )


class Features(ResponseModel):
    """What can be done with a tenant, as far as this service knows."""

    can_tag: bool
    can_run: bool = Field(description="Whether this service may start runs (mode `both`).")
    topics: bool = Field(description="Whether costs are attributed to topics.")


class RunInProgress(ResponseModel):
    """Where the present run is."""

    stage: str | None
    date: date | None


class TenantOverview(TopicSettings):
    """One tenant: what a page needs to know before it asks for anything else."""

    tenant_name: str = Field(examples=["acme"])
    tenant_id: str = Field(examples=["acme"])
    ecosystem: str = Field(examples=["confluent_cloud"])
    currency: str = Field(examples=["USD"])
    currencies: list[str] = Field(
        description="The other currencies in which sums can be asked for.", examples=[["EUR"]]
    )
    first_date: date | None = Field(description="First UTC day that has chargebacks.")
    last_date: date | None = Field(description="Last UTC day that has been calculated.")
    lookback_days: int
    permanent_failure: str | None = Field(
        description="Why the tenant is suspended, or null. A caller with a scope is told that it is, and not why."
    )
    tag_keys: list[TagKeyCoverage]
    features: Features
    run: RunInProgress | None


class RunItem(ResponseModel):
    """One run."""

    run_id: str = Field(examples=["17"])
    status: str = Field(
        description="`running`, `completed`, `completed_with_errors`, or how it failed.", examples=["completed"]
    )
    started_at: Instant
    completed_at: Instant | None
    dates_gathered: int
    dates_calculated: int
    chargeback_rows_written: int
    errors: list[str]


class RunList(ResponseModel):
    """The last runs."""

    items: list[RunItem]
