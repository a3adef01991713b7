"""Runs of the pipeline."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from fastapi import Body, Query, Request
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.parameters import CommonParameters, Day, Note, Restating, check_order
from chargeback.api.problems import InvalidParameter
from chargeback.api.responses import json_response
from chargeback.api.rewriting import prefix_of
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Change, Control
from chargeback.errors import LeaseHeld, NoRunner
from chargeback.model.run_request import RunRequest
from chargeback.reports.answers import Instant, PageOf, ResponseModel
from chargeback.reports.closing.reach import check_recalculation
from chargeback.store.control.audit import RUN_CANCELLED, AuditEntry, record
from chargeback.store.control.closings import read_books
from chargeback.store.control.runs import ask_to_end, latest_runs, pipeline_state, read_log


class RunBody(Restating):
    """Parameters of a run; without a body, it processes everything that is due."""

    start_date: Day | None = Field(default=None, description="First UTC day to calculate, inclusive.")
    end_date: Day | None = Field(default=None, description="Last UTC day to calculate, inclusive.")
    recalculate: bool = Field(default=False, strict=True, description="Fetch usage again and recalculate these days.")
    accept_less: bool = Field(
        default=False,
        strict=True,
        description="With `recalculate`: also accept bills and usage that are smaller than the stored ones.",
    )
    reason: Note | None = Field(default=None, description="The reason; needed with `restate_closed`.", examples=[None])

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that the start is not after the end, and that there is a reason if one is needed."""
        if wrong := check_order(raw):
            return wrong
        if raw.get("accept_less") is True and raw.get("recalculate") is not True:
            return [InvalidParameter("accept_less", "requires recalculate")]
        return super().cross_checks(raw, now)


class RunAccepted(ResponseModel):
    """A run has begun."""

    tenant_name: str = Field(examples=["acme"])
    status: Literal["started"]
    message: str = Field(examples=["Pipeline run started for tenant acme"])


class RunResult(ResponseModel):
    """The result of the last run that has ended."""

    dates_gathered: int
    dates_calculated: int
    chargeback_rows_written: int
    errors: list[str]
    completed_at: Instant


class RunProgress(ResponseModel):
    """The progress of the present run."""

    stage: str | None
    date: date | None
    done: int = Field(description="The number of finished days of the stage.")
    total: int = Field(description="The number of all days of the stage; 0 if it does not count days.")
    is_cancelled: bool = Field(description="Whether the run was cancelled.")


class RunCancelled(ResponseModel):
    """The result of a cancellation."""

    run_id: str | None = Field(
        description="The run that ends at its next safe point; null if none is in progress.", examples=["17"]
    )


class LogQuery(CommonParameters):
    """Parameters of the log of a run."""

    run_id: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="The run. Default: the latest.", examples=[17]
    )


class LogLine(ResponseModel):
    """A line of the log of a run."""

    at: Instant
    level: str = Field(examples=["WARNING"])
    message: str


class PipelineStatus(ResponseModel):
    """Whether a run is in progress, and the result of the last one."""

    tenant_name: str = Field(examples=["acme"])
    is_running: bool
    progress: RunProgress | None = Field(description="The progress of the present run; null if there is none.")
    permanent_failure: str | None = Field(
        description="Why the tenant is suspended, and how to resume it; null if it is not suspended. For callers with "
        "a scope the reason is left out."
    )
    last_run: Instant | None = Field(description="The end of the last finished run.")
    last_result: RunResult | None


router = Routes(prefix="/tenants/{tenant_name}/pipeline", tags=["Pipeline"])

_NO_RUNNER = (
    "No WorkflowRunner available - run in both mode: this process was started with --mode api and starts no runs. "
    "Use `chargeback run --tenant {tenant}` on a host with the configuration, or start the service with --mode both."
)
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "URL of the run's status."}}


@router.post(
    "/run",
    status_code=202,
    response_model=RunAccepted,
    needs=Right.RUN,
    answer="The run has started.",
    problems={
        400: "The body is invalid, or the service does not run in mode `both`.",
        409: "A run is already in progress, the tenant is suspended, or days of closed months would be calculated "
        "again (`reaches-into-closed`).",
        503: "`features.max_parallel_tenants` runs are in progress (`Retry-After` says when to try "
        "again), or the storage of the tenant is unavailable.",
    },
    responses={202: {"headers": _LOCATION}},
)
def run_pipeline(
    http: Request,
    request: Change,
    caller: CallerDep,
    params: Annotated[RunBody, Body(default_factory=RunBody)],
) -> Response:
    """Start a run for a tenant. With `recalculate`, usage is fetched again and the days of the range are recalculated;
    days of closed months only with `restate_closed`: what moves is then posted to the first open month."""
    name, pipeline = request.tenant.tenant_name, request.tenant.pipeline
    if pipeline is None:
        raise NoRunner(_NO_RUNNER.format(tenant=name))
    run_request = RunRequest(
        params.start_date, params.end_date, params.recalculate, params.accept_less, caller.name, params.reason
    )
    if params.recalculate and not params.restate_closed:
        with request.reading() as connection:
            check_recalculation(read_books(connection), run_request, request.tenant.currency)
    try:
        pipeline.trigger(name, run_request, request.context.token.begin_commit)
    except LeaseHeld:
        raise LeaseHeld(f"Pipeline is already running for tenant {name}") from None
    status_path = http.app.url_path_for("pipeline_status", tenant_name=name)
    return json_response(
        RunAccepted(tenant_name=name, status="started", message=f"Pipeline run started for tenant {name}"),
        status=202,
        headers={"Location": f"{prefix_of(http.scope)}{status_path}"},
    )


@router.post("/cancel", needs=Right.RUN, answer="The run in progress will stop, or there is none.")
def cancel_run(request: Change, caller: CallerDep) -> RunCancelled:
    """Cancel the run in progress, on any host. It ends within some seconds at its next safe point, or is killed. The
    days that it has written are complete, and the next run continues."""
    with request.writing() as connection:
        current = pipeline_state(connection).current
        if current is None:
            return RunCancelled(run_id=None)
        run_id = current["run_id"]
        if ask_to_end(connection, run_id, caller.name):
            record(connection, caller.name, [AuditEntry(RUN_CANCELLED, f"run/{run_id}")])
    return RunCancelled(run_id=str(run_id))


@router.get("/log", needs=Right.READ, whole=True)
def read_run_log(request: Control, params: Annotated[LogQuery, Query()]) -> PageOf[LogLine]:
    """Return the log of a run so far, in order: its stages, and its errors. Logs are kept as long as runs; the log of
    an unknown run is empty."""
    page = params.paging
    latest = latest_runs(request.connection, 1)
    run_id = params.run_id or (latest[0]["run_id"] if latest else 0)
    lines, total = read_log(request.connection, run_id, offset=page.offset, limit=page.limit)
    return PageOf[LogLine].of([LogLine.like(each) for each in lines], total, page)


@router.get("/status", needs=Right.READ)
def pipeline_status(request: Control, _params: Annotated[CommonParameters, Query()]) -> PipelineStatus:
    """Return whether a run is in progress, and the result of the last finished run. The result is about the whole bill:
    callers with a scope get only the time of its end, and no reason of a suspension."""
    state = pipeline_state(request.connection)
    last = state.last_ended
    result = None
    progress = None
    if state.current is not None:
        progress = RunProgress(
            stage=state.stage,
            date=state.stage_date,
            done=state.done,
            total=state.total,
            is_cancelled=state.current["cancelled_by"] is not None,
        )
    if last is not None and request.access.sees_everything:
        result = RunResult(
            dates_gathered=last["dates_gathered"],
            dates_calculated=last["dates_calculated"],
            chargeback_rows_written=last["chargeback_rows_written"],
            errors=last["errors"],
            completed_at=last["ended_at"],
        )
    return PipelineStatus(
        tenant_name=request.tenant.tenant_name,
        is_running=state.is_running,
        progress=progress,
        permanent_failure=request.access.reason(state.suspended_because),
        last_run=None if last is None else last["ended_at"],
        last_result=result,
    )
