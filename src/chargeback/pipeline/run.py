"""One run of one tenant: executes the stages and records the result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields

from sqlalchemy import Connection

from chargeback.config import Tenant
from chargeback.config.compute import LOCAL, ComputeSettings
from chargeback.config.configuration import state_dir
from chargeback.ecosystems.contract import TenantContext
from chargeback.errors import ChargebackError, LeaseLost, Stopped, StorageError
from chargeback.model.days import Clock, utc_now
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.anomalies import record_anomalies
from chargeback.pipeline.bills import open_others
from chargeback.pipeline.chargebacks import calculate
from chargeback.pipeline.digest import record_week
from chargeback.pipeline.emit import emit
from chargeback.pipeline.gather import gather
from chargeback.pipeline.notices import record_budgets, record_contracts, record_months
from chargeback.pipeline.partials import complete_partials
from chargeback.pipeline.publish import publish_run
from chargeback.pipeline.repair import repair
from chargeback.pipeline.retain import retain
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_facts import record_events
from chargeback.pipeline.run_messages import Progress, RunCounts, RunOutcome, RunResult, StopSignal
from chargeback.pipeline.shadows import calculate_shadows
from chargeback.pipeline.topics import overlay, queue_topics
from chargeback.recompute.rules import with_stored
from chargeback.store.control import runs
from chargeback.store.control.audit import RUN_REQUESTED, AuditEntry, record
from chargeback.store.control.events import RUN_FAILED, TENANT_SUSPENDED, Event, add_events
from chargeback.store.control.lease import Lease
from chargeback.store.control.policies import record_shipped
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)

_MAX_ERRORS = 1000
#: The functions that record events of the facts, by the beginning of the message if they fail.
_EVENT_RECORDERS = {
    "budgets are checked again": record_budgets,
    "anomalies are searched again": record_anomalies,
    "contracts are checked again": record_contracts,
    "months are checked again": record_months,
    "the weekly digest is made": record_week,
}
#: The counters that are columns of the table of runs.
_RECORDED = [each.name for each in fields(RunCounts) if each.name in runs.COLUMNS]


def run_tenant(
    tenant: Tenant,
    store: TenantStore,
    lease: Lease,
    request: RunRequest,
    *,
    stop: StopSignal,
    listener: Callable[[Progress], None],
    clock: Clock = utc_now,
    compute: ComputeSettings = LOCAL,
) -> RunResult:
    """Execute the run, record it, and release the lease. Errors of the run are recorded, not raised; if its end cannot
    be recorded, the run fails.

    The run uses ``clock``; its ``today`` is the day on which it starts, even if it ends on another. ``compute`` sets
    where its days are calculated.

    Raises:
        LeaseLost: another process has taken over; nothing more was written.
    """
    run = RunContext(tenant, store, lease, request, clock().date(), stop, listener, clock, compute=compute)
    with run.log, lease.heartbeat(run.is_moving, run.attend):
        with lease.write() as connection:
            run.run_id = run_id = runs.start_run(connection, lease.epoch, clock)
            begun = record_shipped(connection, tenant.ecosystem.catalogue.policies, clock())
            run.tenant = with_stored(tenant, connection)
            if request.requested_by is not None:
                record(connection, request.requested_by, [_requested(run_id, request)], clock)
        if begun is not None:
            log.warning(
                "%s: this version ships other policies: they are in force from %s on, and the days before keep theirs",
                tenant.name,
                begun.effective_from,
            )
        result = _result(run, _run_stages(run))
        try:
            _record(run, run_id, result)
        except LeaseLost:
            raise
        except StorageError as error:
            run.record_error(f"the end of the run could not be recorded: {error}")
            return _result(run, RunOutcome.FAILED)
    lease.release()
    return result


def _requested(run_id: int, request: RunRequest) -> AuditEntry:
    """Return the entry of the audit log about a run that was requested."""
    details = {
        "start_date": None if request.start is None else request.start.isoformat(),
        "end_date": None if request.end is None else request.end.isoformat(),
        "recalculate": request.recalculate,
        "accept_less": request.accept_less,
        "restate": request.restate,
        "reason": request.reason,
    }
    return AuditEntry(RUN_REQUESTED, f"run/{run_id}", None, details)


def _record(run: RunContext, run_id: int, result: RunResult) -> None:
    with run.lease.write() as connection:
        if run.record.gathering_error is not None:
            _count_failure(run, connection)
        if result.outcome is RunOutcome.FAILED:
            body = {"error": result.errors[0] if result.errors else "", "errors": len(result.errors)}
            once = f"run failed {run.today}"  # once a day, however often it is tried again
            add_events(connection, [Event(RUN_FAILED, f"run/{run_id}", body, once)], run.now())
        runs.finish_run(
            connection,
            run_id,
            outcome=result.outcome,
            errors=list(result.errors),
            counts={name: getattr(result, name) for name in _RECORDED},
            days=[day for days in run.record.days_of_errors.values() for day in days],
            clock=run.now,
        )
        run.log.note(f"The run has ended: {result.outcome.replace('_', ' ')}.")
        run.attend(connection)


def _run_stages(run: RunContext) -> RunOutcome:
    """Run the stages in order; return how the run ended."""
    tenant = run.tenant
    try:
        context = TenantContext(
            tenant_name=tenant.name,
            tenant_id=tenant.settings.tenant_id,
            currency=tenant.settings.currency,
            today=run.today,
            stop=run.stop,
            state_dir=str(state_dir()),
            now=run.now,
        )
        with run.store.facts.alone():
            repair(run)
            with (
                tenant.ecosystem.open(context, tenant.plugin_settings) as gatherer,
                open_others(tenant, context) as others,
            ):
                gather(run, gatherer, others)
                run.check()
                queue_topics(run)
                calculate(run, gatherer)
                run.check()
                overlay(run, gatherer)
            run.check()
            calculate_shadows(run)
            complete_partials(run)
            record_events(run, _EVENT_RECORDERS)
            run.check()
            emit(run)
            run.check()
            retain(run)
            publish_run(run)
    except Stopped:
        run.record.errors.append(run.stop.reason.error)
        return run.stop.reason.outcome
    except LeaseLost:
        raise
    except ChargebackError as error:
        run.record_error(str(error))
        return RunOutcome.FAILED
    except Exception as error:  # the outermost edge of a run: a plugin may raise anything
        log.exception("tenant %s: the run failed", tenant.name)
        run.record.errors.append(f"internal error: {type(error).__name__}")
        return RunOutcome.FAILED
    if run.record.gathering_error is not None:
        return RunOutcome.FAILED
    return RunOutcome.COMPLETED_WITH_ERRORS if run.record.errors else RunOutcome.COMPLETED


def _count_failure(run: RunContext, connection: Connection) -> None:
    """Count a consecutive gather failure; suspend the tenant at the threshold."""
    failures = runs.count_gather_failure(connection)
    if failures >= run.tenant.settings.gather_failure_threshold:
        reason = (
            f"gathering failed {failures} times in a row, last: {run.record.gathering_error}; "
            "fix the cause, then restart the worker"
        )
        runs.suspend(connection, reason)
        event = Event(TENANT_SUSPENDED, f"tenant/{run.tenant.name}", {"reason": reason}, f"suspended {run.run_id}")
        add_events(connection, [event], run.now())


def _result(run: RunContext, outcome: RunOutcome) -> RunResult:
    errors = run.record.described_errors()
    if len(errors) > _MAX_ERRORS:  # the record of a run has a limited size
        errors[_MAX_ERRORS:] = [f"and {len(errors) - _MAX_ERRORS} more, which are in the log"]
    return RunResult(run.tenant.name, outcome, errors=tuple(errors), completed_at=run.now(), **run.stats())
