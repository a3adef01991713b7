"""Runs of the pipeline."""

from typing import Annotated

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.conditional import ControlDep
from chargeback.api.dependencies import CallerDep, ContextDep, TenantDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import body, query
from chargeback.api.path_prefix import prefix_of
from chargeback.api.reasons import told_reason
from chargeback.api.responses import json_response
from chargeback.api.schemas.pipeline import PipelineStatus, RunAccepted, RunBody
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.errors import LeaseHeld, NoRunner
from chargeback.model.days import render_instant
from chargeback.pipeline.run_messages import RunRequest
from chargeback.store.control.pipeline_state import pipeline_state

router = APIRouter(prefix="/tenants/{tenant_name}/pipeline", tags=["Pipeline"])

_NO_RUNNER = (
    "No WorkflowRunner available - run in both mode: this process was started with --mode api and starts no runs. "
    "Use `chargeback run --tenant {tenant}` on a host with the configuration, or start the service with --mode both."
)
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "URL of the run's status."}}


@router.post(
    "/run",
    status_code=202,
    response_model=RunAccepted,
    **documented(
        needs=Right.RUN,
        body=RunBody,
        optional_body=True,
        answer="The run has started.",
        problems={
            400: "The body is invalid, or the service does not run in mode `both`.",
            409: "A run is already in progress, or the tenant is suspended.",
            503: "`features.max_parallel_tenants` runs are in progress (`Retry-After` says when to try "
            "again), or the storage of the tenant is unavailable.",
        },
        extra={202: {"headers": _LOCATION}},
    ),
)
async def run_pipeline(
    request: Request,
    tenant: TenantDep,
    context: ContextDep,
    caller: CallerDep,
    params: Annotated[RunBody, body(RunBody, optional=True)],
) -> Response:
    """Start a run for a tenant. With `recalculate`, usage is fetched again and the days of the range are
    recalculated."""
    name, pipeline = tenant.tenant_name, tenant.pipeline
    if pipeline is None:
        raise NoRunner(_NO_RUNNER.format(tenant=name))
    run_request = RunRequest(params.start_date, params.end_date, params.recalculate, params.accept_less, caller.name)
    try:
        await context.run_blocking(tenant, lambda: pipeline.trigger(name, run_request, context.token.begin_commit))
    except LeaseHeld:
        raise LeaseHeld(f"Pipeline is already running for tenant {name}") from None
    status_path = request.app.url_path_for("pipeline_status", tenant_name=name)
    return json_response(
        {"tenant_name": name, "status": "started", "message": f"Pipeline run started for tenant {name}"},
        status=202,
        headers={"Location": f"{prefix_of(request.scope)}{status_path}"},
    )


@router.get("/status", response_model=PipelineStatus, **documented(needs=Right.READ, query=TenantsQuery, etag=True))
async def pipeline_status(control: ControlDep, _params: Annotated[TenantsQuery, query(TenantsQuery)]) -> Response:
    """Return whether a run is in progress, and the result of the last finished run, which is about the whole bill: a
    caller with a scope is told only when it ended, and of a suspended tenant not why."""
    sees_all = control.access.scope is None

    def _read(connection: Connection) -> Response:
        state = pipeline_state(connection)
        last = state.last_ended
        ended = None if last is None else render_instant(last["ended_at"])
        return json_response(
            {
                "tenant_name": control.tenant.tenant_name,
                "is_running": state.is_running,
                "permanent_failure": told_reason(state.suspended_because, control.access),
                "last_run": ended,
                "last_result": None
                if last is None or not sees_all
                else {
                    "dates_gathered": last["dates_gathered"],
                    "dates_calculated": last["dates_calculated"],
                    "chargeback_rows_written": last["chargeback_rows_written"],
                    "errors": last["errors"],
                    "completed_at": ended,
                },
            }
        )

    return await control.of_anything(_read)
