"""`GET /health`: the process is alive, without access to storage. `GET /api/v1/readiness`: the state of the service and
its tenants, cached for two seconds."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Final, Literal

from fastapi import Query, Request
from pydantic import Field

from chargeback.api.authorisation import Access, access_to, authenticated_or_none
from chargeback.api.dependencies import ServicesDep
from chargeback.api.executor import RequestExecutor, control_reader
from chargeback.api.parameters import CommonParameters
from chargeback.api.routes.tenants import TopicError, TopicStatus
from chargeback.api.routing import Routes
from chargeback.api.services import Services
from chargeback.errors import StorageError
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.runs import PipelineState, pipeline_state
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.queries.engine import CancellationToken


class Health(ResponseModel):
    """The process is alive."""

    status: Literal["ok"]
    version: str = Field(examples=["0.1.0"])


class TenantReadiness(ResponseModel):
    """Whether one tenant can be queried, and the state of its pipeline."""

    tenant_name: str = Field(examples=["acme"])
    tables_ready: bool = Field(description="Whether its control database has the current schema.")
    has_data: bool = Field(description="Whether it has any chargeback rows.")
    pipeline_running: bool
    pipeline_stage: Literal["gathering", "calculating", "topic_overlay", "emitting", "retention"] | None
    pipeline_current_date: date | None
    last_run_status: (
        Literal["running", "completed", "completed_with_errors", "failed", "timed_out", "interrupted", "cancelled"]
        | None
    )
    last_run_at: Instant | None
    permanent_failure: str | None = Field(
        description="Why the tenant is suspended, and how to resume it; null if it is not suspended. For callers with "
        "a scope the reason is left out."
    )
    storage_error: str | None = Field(
        description="Why its storage is unavailable, or null. It is retried automatically."
    )
    topic_attribution_status: TopicStatus
    topic_attribution_error: TopicError


class Readiness(ResponseModel):
    """The state of the service and its tenants. To probe the process, use `/health`."""

    status: Literal["ready", "initializing", "no_data", "error"]
    version: str = Field(examples=["0.1.0"])
    mode: Literal["api", "worker", "both"]
    tenants: list[TenantReadiness]


log = logging.getLogger(__name__)

_REMEMBERED_SECONDS = 2.0
#: The fields with reasons of failures, which not every caller may see.
_REASONS: Final = ("permanent_failure", "topic_attribution_error")
#: The fields of a pipeline whose state is unknown.
_NO_STATE: Final = PipelineState(
    is_running=False,
    stage=None,
    stage_date=None,
    suspended_because=None,
    last_ended=None,
    last_outcome=None,
    last_at=None,
)


@dataclass(frozen=True)
class TenantCondition:
    """The condition of a tenant; ``state`` is None as long as its tables are not set up."""

    state: PipelineState | None
    has_data: bool


class ReadinessCache:
    """The last response, the errors that were logged, and the tenants whose schema is known to be current, which does
    not change."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.made_at = 0.0
        self.answer: Readiness | None = None
        self.current: set[str] = set()
        self.errors: dict[str, str] = {}

    async def readiness(self, services: Services, executor: RequestExecutor) -> Readiness:
        """Return the last response if it can be reused, else a new one."""
        async with self.lock:
            if self.answer is None or time.monotonic() - self.made_at >= _REMEMBERED_SECONDS:
                self.answer = await _readiness(services, executor, self)
                self.made_at = time.monotonic()
            return self.answer

    def check(self, tenant: TenantView, token: CancellationToken) -> TenantCondition:
        """Return the condition of a tenant.

        Raises:
            StorageError: its storage cannot be used.
        """
        if tenant.tenant_name not in self.current:
            if not tenant.store.control.is_current():
                return TenantCondition(None, has_data=False)
            self.current.add(tenant.tenant_name)
        with control_reader(tenant, token) as connection:
            state = pipeline_state(connection)
        return TenantCondition(state, has_data=tenant.whole_store.facts.snapshot(CHARGEBACKS_TABLE).rows > 0)

    def log_change(self, tenant: str, error: str | None) -> None:
        """Log when the storage of a tenant becomes unavailable, and when it is available again."""
        if error is None:
            if self.errors.pop(tenant, None) is not None:
                log.info("the storage of tenant %s can be used again", tenant)
        elif self.errors.get(tenant) != error:
            self.errors[tenant] = error
            log.error("the storage of tenant %s cannot be used: %s", tenant, error)


router = Routes(tags=["Health"])


@router.get("/readiness", needs=Access.PUBLIC, only=(400, 500, 504))
async def readiness(
    request: Request, services: ServicesDep, _params: Annotated[CommonParameters, Query()]
) -> Readiness:
    """Return the readiness of the service, and of each tenant that the caller may read. The status code is always 200.
    Cached for two seconds."""
    cache: ReadinessCache = request.app.state.readiness
    answer = await cache.readiness(services, request.app.state.executor)
    caller = await authenticated_or_none(request)
    shown = []
    for entry in answer.tenants:
        access = None if caller is None else access_to(caller, entry.tenant_name)
        if access is not None:
            reasons = {name: access.reason(getattr(entry, name)) for name in _REASONS}
            shown.append(entry.model_copy(update=reasons))
    return answer.model_copy(update={"tenants": shown})


async def _readiness(services: Services, executor: RequestExecutor, cache: ReadinessCache) -> Readiness:
    tenants = list(services.tenants.values())
    found = await executor.watch(tenants, cache.check)
    described = [_described(tenant, each, cache) for tenant, each in zip(tenants, found, strict=True)]
    return Readiness(
        status=overall([status for status, _ in described]),
        version=services.version,
        mode=services.mode,
        tenants=[entry for _, entry in described],
    )


def overall(statuses: list[str]) -> Literal["ready", "initializing", "no_data", "error"]:
    """Return the service's status, from those of its tenants: ``error``, ``suspended``, ``initializing``, ``no_data``
    or ``ready``.

    >>> overall(["ready", "no_data"]), overall(["ready", "suspended"]), overall(["suspended"])
    ('ready', 'ready', 'error')
    """
    if "error" in statuses or (statuses and set(statuses) == {"suspended"}):
        return "error"
    if "initializing" in statuses:
        return "initializing"
    return "ready" if "ready" in statuses or "suspended" in statuses else "no_data"


def _described(
    tenant: TenantView, found: TenantCondition | StorageError, cache: ReadinessCache
) -> tuple[str, TenantReadiness]:
    """Return the status of a tenant, and its entry."""
    error = found.message if isinstance(found, StorageError) else None
    cache.log_change(tenant.tenant_name, error)
    condition = TenantCondition(None, has_data=False) if isinstance(found, StorageError) else found
    state = condition.state or _NO_STATE
    entry = TenantReadiness(
        tenant_name=tenant.tenant_name,
        tables_ready=condition.state is not None,
        has_data=condition.has_data,
        pipeline_running=state.is_running,
        pipeline_stage=state.stage,
        pipeline_current_date=state.stage_date,
        last_run_status=state.last_outcome,
        last_run_at=state.last_at,
        permanent_failure=state.suspended_because,
        storage_error=error,
        topic_attribution_status=tenant.topic_attribution_status,
        topic_attribution_error=tenant.topic_attribution_error,
    )
    if error is not None:
        return "error", entry
    return "initializing" if condition.state is None else _status(state, condition.has_data), entry


def _status(state: PipelineState, has_data: bool) -> str:
    if state.suspended_because is not None:
        return "suspended"
    if state.is_running and state.last_ended is None:
        return "initializing"
    return "ready" if has_data else "no_data"


health_router = Routes(root="", tags=["Health"])


@health_router.get("/health", needs=Access.PUBLIC, only=(400,))
async def health(services: ServicesDep) -> Health:
    """Return the status and version of the process."""
    return Health(status="ok", version=services.version)
