"""`GET /api/v1/readiness`: what can be asked of the service now; remembered for two seconds."""

import asyncio
import logging
import time
from typing import Annotated, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from chargeback.api.answers import json_answer
from chargeback.api.dependencies import TheServices, TheWork
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.schemas.readiness import Readiness
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.api.services import Services, TenantView
from chargeback.api.work import Work
from chargeback.errors import StorageError
from chargeback.model.days import render_instant
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.queries.pipeline_state import PipelineState, pipeline_state

log = logging.getLogger(__name__)

_REMEMBERED_SECONDS = 2.0


class ReadinessMemory:
    """The last answer, and for which tenants the schema is known to be current: that does not change any more."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.made_at = -_REMEMBERED_SECONDS
        self.answer: dict[str, Any] = {}
        self.current: set[str] = set()

    def is_fresh(self) -> bool:
        """Whether the last answer may be given again."""
        return time.monotonic() - self.made_at < _REMEMBERED_SECONDS


router = APIRouter(tags=["Health"])


@router.get("/readiness", response_model=Readiness, **documented(query=TenantsQuery, only=(400, 500, 504)))
async def readiness(
    request: Request, services: TheServices, work: TheWork, _asked: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """What can be asked now: always 200, it describes. Remembered for two seconds."""
    memory: ReadinessMemory = request.app.state.readiness
    async with memory.lock:
        if not memory.is_fresh():
            memory.answer = await _readiness(services, work, memory)
            memory.made_at = time.monotonic()
    return json_answer(memory.answer)


async def _readiness(services: Services, work: Work, memory: ReadinessMemory) -> dict[str, Any]:
    tenants = [work.do(_describing(tenant, memory)) for tenant in services.tenants.values()]
    described = await asyncio.gather(*tenants)
    return {
        "status": overall([status for status, _ in described]),
        "version": services.version,
        "mode": services.mode,
        "tenants": [tenant for _, tenant in described],
    }


def overall(statuses: list[str]) -> str:
    """The service's status from its tenants': ``error``, ``suspended``, ``initializing``, ``no_data`` or ``ready``.

    >>> overall(["ready", "no_data"]), overall(["ready", "suspended"]), overall(["suspended"])
    ('ready', 'ready', 'error')
    """
    if "error" in statuses or (statuses and set(statuses) == {"suspended"}):
        return "error"
    if "initializing" in statuses:
        return "initializing"
    return "ready" if "ready" in statuses or "suspended" in statuses else "no_data"


def _describing(tenant: TenantView, memory: ReadinessMemory) -> Any:
    def _describe() -> tuple[str, dict[str, Any]]:
        try:
            ready = tenant.tenant_name in memory.current or tenant.store.control.is_current()
            if not ready:
                return "initializing", _entry(tenant, None, tables_ready=False, has_data=False)
            memory.current.add(tenant.tenant_name)
            with tenant.store.control.read() as connection:
                state = pipeline_state(connection)
            has_data = tenant.store.facts.snapshot(CHARGEBACKS_TABLE).rows > 0
        except StorageError as error:
            log.error("the storage of tenant %s cannot be used: %s", tenant.tenant_name, error)
            return "error", _entry(tenant, None, tables_ready=False, has_data=False)
        return _status(state, has_data), _entry(tenant, state, tables_ready=True, has_data=has_data)

    return _describe


def _status(state: PipelineState, has_data: bool) -> str:
    if state.suspended_because is not None:
        return "suspended"
    if state.is_running and state.last_ended is None:
        return "initializing"
    return "ready" if has_data else "no_data"


def _entry(tenant: TenantView, state: PipelineState | None, *, tables_ready: bool, has_data: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "tenant_name": tenant.tenant_name,
        "tables_ready": tables_ready,
        "has_data": has_data,
        "pipeline_running": state is not None and state.is_running,
        "pipeline_stage": None,
        "pipeline_current_date": None,
        "last_run_status": None,
        "last_run_at": None,
        "permanent_failure": None,
        "topic_attribution_status": tenant.topic_attribution_status,
        "topic_attribution_error": tenant.topic_attribution_error,
    }
    if state is not None:
        entry |= {
            "pipeline_stage": state.stage,
            "pipeline_current_date": state.stage_date,
            "last_run_status": state.last_outcome,
            "last_run_at": None if state.last_at is None else render_instant(state.last_at),
            "permanent_failure": state.suspended_because,
        }
    return entry
