"""Tenants, and the state of their days."""

import asyncio
import logging
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.api.answers import json_answer
from chargeback.api.dependencies import TheServices, TheTenant, TheWork
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.schemas.tenants import TenantsQuery, TenantStatus, TenantSummary
from chargeback.api.services import TenantView
from chargeback.errors import StorageError
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.control.days import DayState, count_days, read_days

log = logging.getLogger(__name__)
router = APIRouter(tags=["Tenants"])


@router.get("/tenants", response_model=list[TenantSummary], **documented(query=TenantsQuery, only=(400, 500, 504)))
async def list_tenants(
    services: TheServices, work: TheWork, _asked: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """All tenants, by name."""
    tenants = [services.tenants[name] for name in sorted(services.tenants)]
    return json_answer(await asyncio.gather(*(work.do(_summing_up(tenant)) for tenant in tenants)))


def _summing_up(tenant: TenantView) -> Callable[[], dict[str, Any]]:
    def _sum_up() -> dict[str, Any]:
        summary: dict[str, Any] = {
            "tenant_name": tenant.tenant_name,
            "tenant_id": tenant.tenant_id,
            "ecosystem": tenant.ecosystem,
            "dates_pending": None,
            "dates_calculated": None,
            "last_calculated_date": None,
            "topic_attribution_status": tenant.topic_attribution_status,
            "topic_attribution_error": tenant.topic_attribution_error,
        }
        try:
            with tenant.store.control.read() as connection:
                counts = count_days(connection)
        except StorageError as error:
            log.error("the storage of tenant %s cannot be used: %s", tenant.tenant_name, error)
            return summary
        return summary | {
            "dates_pending": counts.pending,
            "dates_calculated": counts.calculated,
            "last_calculated_date": counts.last_calculated,
        }

    return _sum_up


@router.get("/tenants/{tenant_name}/status", response_model=TenantStatus, **documented(query=TenantsQuery))
async def tenant_status(
    tenant: TheTenant, work: TheWork, asked: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """How far each UTC day of a range is."""
    first, last = asked.days(tenant.lookback_days)

    def _read(connection: Connection) -> list[DayState]:
        return read_days(connection, DayRange(first, last + ONE_DAY))

    states = await work.read(tenant, _read)
    topics = tenant.topic_attribution_status == "enabled"
    return json_answer(
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
        }
    )
