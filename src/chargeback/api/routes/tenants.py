"""Tenants, and the state of their days."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.api.dependencies import ContextDep, ServicesDep, TenantDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.responses import json_response
from chargeback.api.schemas.tenants import TenantsQuery, TenantStatus, TenantSummary
from chargeback.errors import StorageError
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.service.executor import RequestExecutor, control_reader
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.days import DayCounts, DayState, count_days, read_days
from chargeback.store.queries.cancellation import CancellationToken

router = APIRouter(tags=["Tenants"])


@router.get("/tenants", response_model=list[TenantSummary], **documented(query=TenantsQuery, only=(400, 500, 504)))
async def list_tenants(
    request: Request, services: ServicesDep, _params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """List all tenants by name. If a tenant's storage is unavailable, `storage_error` has the reason."""
    tenants = [services.tenants[name] for name in sorted(services.tenants)]
    executor: RequestExecutor = request.app.state.executor
    found = await executor.watch(tenants, _count)
    return json_response([_summary(tenant, counts) for tenant, counts in zip(tenants, found, strict=True)])


def _count(tenant: TenantView, token: CancellationToken) -> DayCounts:
    with control_reader(tenant, token) as connection:
        return count_days(connection)


def _summary(tenant: TenantView, counts: DayCounts | StorageError) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "tenant_name": tenant.tenant_name,
        "tenant_id": tenant.tenant_id,
        "ecosystem": tenant.ecosystem,
        "dates_pending": None,
        "dates_calculated": None,
        "last_calculated_date": None,
        "storage_error": None,
        "topic_attribution_status": tenant.topic_attribution_status,
        "topic_attribution_error": tenant.topic_attribution_error,
    }
    if isinstance(counts, StorageError):
        return summary | {"storage_error": counts.message}
    return summary | {
        "dates_pending": counts.pending,
        "dates_calculated": counts.calculated,
        "last_calculated_date": counts.last_calculated,
    }


@router.get("/tenants/{tenant_name}/status", response_model=TenantStatus, **documented(query=TenantsQuery))
async def tenant_status(
    tenant: TenantDep, context: ContextDep, params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """Return the state of each UTC day of a range."""
    first, last = params.days(tenant.lookback_days)

    def _read(connection: Connection) -> list[DayState]:
        return read_days(connection, DayRange(first, last + ONE_DAY))

    states = await context.read_control(tenant, _read)
    topics = tenant.topic_attribution_status == "enabled"
    return json_response(
        {
            "tenant_name": tenant.tenant_name,
            "tenant_id": tenant.tenant_id,
            "ecosystem": tenant.ecosystem,
            "topic_attribution_status": tenant.topic_attribution_status,
            "topic_attribution_error": tenant.topic_attribution_error,
            "states": [
                {
                    "tracking_date": state.tracking_date,
                    "billing_gathered": state.billing_gathered,
                    "resources_gathered": state.resources_gathered,
                    "chargeback_calculated": state.chargeback_calculated,
                    "topic_overlay_gathered": topics and state.topic_overlay_gathered,
                    "topic_attribution_calculated": topics and state.topic_attribution_calculated,
                }
                for state in states
            ],
            "incomplete": [
                {"tracking_date": state.tracking_date, "reasons": state.shortcomings}
                for state in states
                if state.shortcomings
            ],
        }
    )
