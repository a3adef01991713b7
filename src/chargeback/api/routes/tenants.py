"""Tenants, and the state of their days."""

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right, TenantAccess
from chargeback.api.authorisation import Access, access_to
from chargeback.api.dependencies import CallerDep, ServicesDep
from chargeback.api.executor import RequestExecutor, control_reader
from chargeback.api.parameters import CommonParameters
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Control
from chargeback.errors import StorageError
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.answers import ResponseModel
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.catalogue import read_published_revision
from chargeback.store.control.days import DayCounts, DayState, count_days, read_days
from chargeback.store.queries.engine import CancellationToken

TopicStatus = Literal["disabled", "enabled", "config_error"]
TopicError = Annotated[
    str | None,
    Field(description="The reason if the status is `config_error`; left out for callers with a scope."),
]


class TenantFields(ResponseModel):
    """The configuration of a tenant in every response about it."""

    tenant_name: str = Field(examples=["acme"])
    tenant_id: str = Field(examples=["acme"])
    ecosystem: str = Field(examples=["confluent_cloud"])
    topic_attribution_status: TopicStatus
    topic_attribution_error: TopicError


class TenantSummary(TenantFields):
    """A summary of one tenant. The counts are null while its storage is unavailable."""

    dates_pending: int | None = Field(description="Days that are gathered, but not calculated yet.")
    dates_calculated: int | None
    last_calculated_date: date | None
    storage_error: str | None = Field(description="Why its storage is unavailable, or null.")


class DayFlags(ResponseModel):
    """The state of one UTC day."""

    tracking_date: date
    billing_gathered: bool
    resources_gathered: bool
    chargeback_calculated: bool
    topic_overlay_gathered: bool
    topic_attribution_calculated: bool


class IncompleteDay(ResponseModel):
    """A day that was calculated with missing evidence; it is calculated again once the evidence is available."""

    tracking_date: date
    reasons: list[str] = Field(
        description="The missing evidence, and why it is missing; for callers with a scope the reasons are left out.",
        examples=[["metrics: the source did not respond"]],
    )


class TenantStatus(TenantFields):
    """One tenant, day by day."""

    is_published: bool = Field(
        description="Whether the tables for other engines are up to date. They are not during a run, after publishing "
        "has failed, and if `storage.publish` is `none`."
    )
    states: list[DayFlags] = Field(description="The days that have a state, ascending.")
    incomplete: list[IncompleteDay] = Field(
        description="The days that were calculated with missing evidence, ascending."
    )


router = Routes(tags=["Tenants"])


@router.get("/tenants", response_model=list[TenantSummary], needs=Access.AUTHENTICATED, only=(400, 500, 504))
async def list_tenants(
    request: Request,
    services: ServicesDep,
    caller: CallerDep,
    _params: Annotated[CommonParameters, Query()],
) -> Response:
    """List the tenants that the caller may read by name. If a tenant's storage is unavailable, `storage_error` has the
    reason."""
    allowed = {name: access_to(caller, name) for name in sorted(services.tenants)}
    accesses = {name: access for name, access in allowed.items() if access is not None}
    tenants = [services.tenants[name] for name in accesses]
    executor: RequestExecutor = request.app.state.executor
    found = await executor.watch(tenants, _count)
    return json_response(
        [_summary(tenant, accesses[tenant.tenant_name], counts) for tenant, counts in zip(tenants, found, strict=True)]
    )


def _count(tenant: TenantView, token: CancellationToken) -> DayCounts:
    with control_reader(tenant, token) as connection:
        return count_days(connection)


def tenant_settings(tenant: TenantView, access: TenantAccess) -> dict[str, Any]:
    """Return the fields of :class:`TenantFields` that the caller may see."""
    return {
        "tenant_name": tenant.tenant_name,
        "tenant_id": tenant.tenant_id,
        "ecosystem": tenant.ecosystem,
        "topic_attribution_status": tenant.topic_attribution_status,
        "topic_attribution_error": access.reason(tenant.topic_attribution_error),
    }


def _summary(tenant: TenantView, access: TenantAccess, counts: DayCounts | StorageError) -> TenantSummary:
    known = None if isinstance(counts, StorageError) else counts
    return TenantSummary(
        **tenant_settings(tenant, access),
        dates_pending=known and known.pending,
        dates_calculated=known and known.calculated,
        last_calculated_date=known and known.last_calculated,
        storage_error=counts.message if isinstance(counts, StorageError) else None,
    )


@router.get("/tenants/{tenant_name}/status", needs=Right.READ)
def tenant_status(request: Control, params: Annotated[CommonParameters, Query()]) -> TenantStatus:
    """Return the state of each UTC day of a range. For callers with a scope, the missing evidence of incomplete days is
    returned without the reasons."""
    tenant, access = request.tenant, request.access
    first, last = params.days(tenant.lookback_days)
    topics = tenant.topic_attribution_status == "enabled"
    states = read_days(request.connection, DayRange(first, last + ONE_DAY))
    stored, published = read_published_revision(request.connection)
    return TenantStatus(
        **tenant_settings(tenant, access),
        is_published=stored == published,
        states=[_state(state, topics=topics) for state in states],
        incomplete=[
            IncompleteDay(
                tracking_date=state.tracking_date,
                reasons=state.shortcomings if access.sees_everything else state.lacks,
            )
            for state in states
            if state.shortcomings
        ],
    )


def _state(state: DayState, *, topics: bool) -> DayFlags:
    return DayFlags(
        tracking_date=state.tracking_date,
        billing_gathered=state.billing_gathered,
        resources_gathered=state.resources_gathered,
        chargeback_calculated=state.chargebacks.is_current,
        topic_overlay_gathered=topics and state.topics.is_measured,
        topic_attribution_calculated=topics and state.topics.is_current,
    )
