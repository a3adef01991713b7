"""An overview of a tenant: its data, its features, and its last runs."""

from datetime import date
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from sqlalchemy import RowMapping

from chargeback.access.caller import Right
from chargeback.api.parameters import CommonParameters
from chargeback.api.routes.tenants import TenantFields, tenant_settings
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Control, Facts, FactsRequest
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.reports.costs import coverage_of_tags
from chargeback.reports.health import HealthAnswer, health
from chargeback.store.control.days import read_days
from chargeback.store.control.runs import latest_runs, pipeline_state
from chargeback.store.queries.datasets import CHARGEBACKS

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
    """The features of a tenant in this service."""

    can_tag: bool
    can_run: bool = Field(description="Whether this service may start runs (mode `both`).")
    topics: bool = Field(description="Whether costs are attributed to topics.")


class RunInProgress(ResponseModel):
    """The progress of the present run."""

    stage: str | None
    date: date | None


class TenantOverview(TenantFields):
    """One tenant: what a page needs before it requests anything else."""

    currency: str = Field(examples=["USD"])
    currencies: list[str] = Field(
        description="The other currencies in which sums can be requested.", examples=[["EUR"]]
    )
    first_date: date | None = Field(description="First UTC day that has chargebacks.")
    last_date: date | None = Field(description="Last UTC day that has been calculated.")
    lookback_days: int
    permanent_failure: str | None = Field(
        description="Why the tenant is suspended, or null. For callers with a scope the reason is left out."
    )
    tag_keys: list[TagKeyCoverage]
    category_keys: list[str] = Field(description="The keys of its cost categories.", examples=[["cost_center"]])
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


router = Routes(prefix="/tenants/{tenant_name}", tags=["Tenants"])


def _running(request: FactsRequest, _params: CommonParameters) -> list[Any]:
    """Return the further values that the overview depends on: the current run, the reason of a suspension, and whether
    the caller can start a run."""
    with request.reading() as connection:
        state = pipeline_state(connection)
    run = RunInProgress(stage=state.stage, date=state.stage_date) if state.is_running else None
    can_run = request.tenant.pipeline is not None and request.access.allows(Right.RUN)
    request.extra = [run, request.access.reason(state.suspended_because), can_run]
    return [*request.extra]


@router.get("", needs=Right.READ, keep=True, also=_running)
def show_tenant(request: Facts, _params: Annotated[CommonParameters, Query()]) -> TenantOverview:
    """Return one tenant: its days, its tag keys with their share of the cost, its features, and the current run."""
    tenant = request.tenant
    run, failure, can_run = request.extra
    dates = request.reader.dates(CHARGEBACKS)
    last = request.version.control.last_calculated
    return TenantOverview(
        **tenant_settings(tenant, request.access),
        currency=tenant.currency,
        currencies=sorted(tenant.currencies),
        first_date=dates[0] if dates else None,
        last_date=last,
        lookback_days=tenant.lookback_days,
        permanent_failure=failure,
        tag_keys=[
            TagKeyCoverage(key=key, coverage=None if share is None else f"{share:f}")
            for key, share in coverage_of_tags(request.reader, last).items()
        ],
        category_keys=sorted(request.reader.categories.index.by_key),
        features=Features(
            can_tag=request.access.allows(Right.TAG),
            can_run=can_run,
            topics=tenant.topic_attribution_status == "enabled",
        ),
        run=run,
    )


@router.get("/runs", needs=Right.READ, whole=True)
def list_runs(request: Control, params: Annotated[RunsQuery, Query()]) -> RunList:
    """Return the last runs, newest first, including the current one. Runs are kept for 90 days."""
    return RunList(items=[_run(row) for row in latest_runs(request.connection, params.limit)])


@router.get("/health", needs=Right.READ, whole=True)
def show_health(request: Control, _params: Annotated[CommonParameters, Query()]) -> HealthAnswer:
    """Return the problems of a tenant's data, the worst first: days that are pending or incomplete, the last run, a
    suspension; each with its causes, a remedy, and what resolves it. Parameters are ignored."""
    tenant = request.tenant
    return health(
        read_days(request.connection),
        pipeline_state(request.connection),
        lookback_days=tenant.lookback_days,
        has_topics=tenant.topic_attribution_status == "enabled",
        topic_error=tenant.topic_attribution_error,
    )


def _run(row: RowMapping) -> RunItem:
    return RunItem(
        run_id=str(row["run_id"]),
        status=row["outcome"],
        started_at=row["started_at"],
        completed_at=row["ended_at"],
        dates_gathered=row["dates_gathered"],
        dates_calculated=row["dates_calculated"],
        chargeback_rows_written=row["chargeback_rows_written"],
        errors=row["errors"],
    )
