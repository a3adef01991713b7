"""One run of one tenant, from the lease to the record: the conductor of the stages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields

from sqlalchemy import Connection

from chargeback.config import Tenant
from chargeback.config.configuration import state_dir
from chargeback.ecosystems.contract import TenantContext
from chargeback.errors import ChargebackError, LeaseLost, Stopped, StorageError
from chargeback.model.days import Clock, utc_now
from chargeback.pipeline.calculate import calculate
from chargeback.pipeline.emit import emit
from chargeback.pipeline.gather import gather
from chargeback.pipeline.overlay import overlay, queue_topics
from chargeback.pipeline.repair import repair
from chargeback.pipeline.retain import retain
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Outcome, Progress, RunCounts, RunRequest, RunResult, StopSignal
from chargeback.store.control import runs
from chargeback.store.control.lease import Lease
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)

_MOST_ERRORS = 1000
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
) -> RunResult:
    """Do the run and record it; the lease is released at the end. Never raises for what a run can survive: where its
    end cannot be recorded, that is its failure.

    The run asks ``clock`` for the time; its ``today`` is the day on which it begins, also when it ends on another.

    Raises:
        LeaseLost: somebody else has taken over; nothing more was written.
    """
    job = RunContext(tenant, store, lease, request, clock().date(), stop, listener, clock)
    with lease.kept_alive(job.is_moving):
        with lease.write() as connection:
            run_id = runs.start_run(connection, lease.epoch, clock)
        result = _result(job, _work(job))
        try:
            _record(job, run_id, result)
        except LeaseLost:
            raise
        except StorageError as error:
            job.record_error(f"the end of the run could not be recorded: {error}")
            return _result(job, Outcome.FAILED)
    lease.release()
    return result


def _record(job: RunContext, run_id: int, result: RunResult) -> None:
    with job.lease.write() as connection:
        if job.tally.gathering_error is not None:
            _count_failure(job, connection)
        runs.finish_run(
            connection,
            run_id,
            outcome=result.outcome,
            errors=list(result.errors),
            counts={name: getattr(result, name) for name in _RECORDED},
            clock=job.now,
        )


def _work(job: RunContext) -> Outcome:
    """The stages, one after the other; what ended them."""
    tenant = job.tenant
    try:
        context = TenantContext(
            tenant_name=tenant.name,
            tenant_id=tenant.settings.tenant_id,
            currency=tenant.settings.currency,
            today=job.today,
            stop=job.stop,
            state_dir=str(state_dir()),
            now=job.now,
        )
        repair(job)
        with tenant.ecosystem.open(context, tenant.plugin_settings) as gatherer:
            gather(job, gatherer)
            job.check()
            queue_topics(job)
            calculate(job, gatherer)
            job.check()
            overlay(job, gatherer)
        job.check()
        emit(job)
        job.check()
        retain(job)
    except Stopped:
        job.tally.errors.append(job.stop.reason.error)
        return job.stop.reason.outcome
    except LeaseLost:
        raise
    except ChargebackError as error:
        job.record_error(str(error))
        return Outcome.FAILED
    except Exception as error:  # the outermost edge of a run: a plugin may raise anything
        log.exception("tenant %s: the run failed", tenant.name)
        job.tally.errors.append(f"internal error: {type(error).__name__}")
        return Outcome.FAILED
    if job.tally.gathering_error is not None:
        return Outcome.FAILED
    return Outcome.COMPLETED_WITH_ERRORS if job.tally.errors else Outcome.COMPLETED


def _count_failure(job: RunContext, connection: Connection) -> None:
    """One more consecutive failure to gather; at the threshold the tenant is suspended."""
    failures = runs.count_gather_failure(connection)
    if failures >= job.tenant.settings.gather_failure_threshold:
        reason = (
            f"gathering failed {failures} times in a row, last: {job.tally.gathering_error}; "
            "find the cause, then restart the worker"
        )
        runs.suspend(connection, reason)


def _result(job: RunContext, outcome: Outcome) -> RunResult:
    return RunResult(
        job.tenant.name, outcome, errors=_bounded(job.tally.described_errors()), completed_at=job.now(), **job.account()
    )


def _bounded(errors: list[str]) -> tuple[str, ...]:
    """The first errors of a run, and how many more the log has: months of trouble must not fill the database."""
    more = len(errors) - _MOST_ERRORS
    return (*errors[:_MOST_ERRORS], f"and {more} more, which are in the log") if more > 0 else tuple(errors)
