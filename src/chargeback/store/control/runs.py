"""Runs, and the state of a tenant between runs: failures, suspension, and the health that monitoring systems see.

Times of runs are those of ``clock``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, Update, delete, func, insert, select, update

from chargeback.model.days import Clock, utc_now
from chargeback.store.control.days import DayDataset, count_days, count_queued
from chargeback.store.control.lease import is_held
from chargeback.store.control.schema import run_logs, runs, tenant

#: How the errors of a run begin or go on that say why it could not fetch the bill, or a required part of the inventory.
GATHERING_FAILED: Final = "gathering failed: "
NOT_LISTED: Final = "could not be listed; new bills are not calculated: "
_KEEP = timedelta(days=90)
_COMPLETED = ("completed", "completed_with_errors")
#: The columns of a run. Counts of a run that have no column are not recorded.
COLUMNS: Final = frozenset(runs.c.keys())


@dataclass(frozen=True, slots=True)
class RunLogLine:
    """A line of the log of a run."""

    at: datetime
    level: str
    message: str


def start_run(connection: Connection, epoch: int, clock: Clock = utc_now) -> int:
    """Record the start of a run and return its number. Runs whose process died are recorded as interrupted; those that
    ended long ago are deleted."""
    now = clock()
    _close(connection, update(runs).where(runs.c.ended_at.is_(None)).values(ended_at=now, outcome="interrupted"))
    expired = runs.c.ended_at < now - _KEEP
    connection.execute(delete(run_logs).where(run_logs.c.run_id.in_(select(runs.c.run_id).where(expired))))
    connection.execute(delete(runs).where(expired))
    inserted = connection.execute(insert(runs).values(lease_epoch=epoch, started_at=now, outcome="running", errors=[]))
    (run_id,) = inserted.inserted_primary_key or (0,)
    return int(run_id)


def finish_run(
    connection: Connection,
    run_id: int,
    *,
    outcome: str,
    errors: list[str],
    counts: dict[str, int],
    days: Collection[date] = (),
    clock: Clock = utc_now,
) -> None:
    """Record how a run ended; ``counts`` are columns of the runs table, ``days`` those that its errors are about."""
    about = {"errors_from": min(days, default=None), "errors_to": max(days, default=None)}
    ended = update(runs).where(runs.c.run_id == run_id)
    connection.execute(ended.values(ended_at=clock(), outcome=outcome, errors=errors, **counts, **about))


def close_open_run(connection: Connection, epoch: int, *, outcome: str, error: str, clock: Clock = utc_now) -> None:
    """Record the end of an epoch's run, if its own process could not."""
    changed = _close(
        connection,
        update(runs)
        .where(runs.c.lease_epoch == epoch, runs.c.ended_at.is_(None))
        .values(ended_at=clock(), outcome=outcome, errors=[error]),
    )
    if changed == 0 and connection.execute(select(runs.c.run_id).where(runs.c.lease_epoch == epoch)).first() is None:
        now = clock()
        connection.execute(
            insert(runs).values(lease_epoch=epoch, started_at=now, ended_at=now, outcome=outcome, errors=[error])
        )


def _close(connection: Connection, ended: Update) -> int:
    """Record the end of runs whose processes did not; return their number."""
    return connection.execute(ended).rowcount


def ask_to_end(connection: Connection, run_id: int, who: str) -> bool:
    """Ask a run to end, as cancelled by ``who``; return whether this is the first request and the run has not ended.
    The run notices with its next heartbeat, on any process and host."""
    asked = update(runs).where(runs.c.run_id == run_id, runs.c.ended_at.is_(None), runs.c.cancelled_by.is_(None))
    return connection.execute(asked.values(cancelled_by=who)).rowcount == 1


def cancelled_by(connection: Connection, run_id: int) -> str | None:
    """Return who has asked a run to end, or None."""
    return connection.execute(select(runs.c.cancelled_by).where(runs.c.run_id == run_id)).scalar()


def add_log(connection: Connection, run_id: int, lines: Iterable[RunLogLine]) -> None:
    """Add lines to the log of a run."""
    rows = [{"run_id": run_id, "at": each.at, "level": each.level, "message": each.message} for each in lines]
    if rows:
        connection.execute(insert(run_logs), rows)


def read_log(connection: Connection, run_id: int, *, offset: int, limit: int) -> tuple[list[RunLogLine], int]:
    """Return one page of the log of a run, in order, as (lines, number of lines in all)."""
    of_run = run_logs.c.run_id == run_id
    total = connection.execute(select(func.count()).select_from(run_logs).where(of_run)).scalar_one()
    query = select(run_logs.c.at, run_logs.c.level, run_logs.c.message).where(of_run).order_by(run_logs.c.id)
    return [RunLogLine(*row) for row in connection.execute(query.offset(offset).limit(limit))], total


def latest_runs(connection: Connection, limit: int) -> list[RowMapping]:
    """Return the rows of the last runs, newest first, including the one in progress."""
    return list(connection.execute(select(runs).order_by(runs.c.run_id.desc()).limit(limit)).mappings())


def last_completed(connection: Connection) -> tuple[datetime, str] | None:
    """Return when the last run that ended began, and its outcome; None if it did not complete: work is left."""
    last = connection.execute(
        select(runs.c.started_at, runs.c.outcome)
        .where(runs.c.ended_at.is_not(None))
        .order_by(runs.c.run_id.desc())
        .limit(1)
    ).first()
    return (last.started_at, last.outcome) if last is not None and last.outcome in _COMPLETED else None


def count_gather_failure(connection: Connection) -> int:
    """Count one more consecutive failure to gather; return the count."""
    connection.execute(update(tenant).values(gather_failures=tenant.c.gather_failures + 1))
    return int(connection.execute(select(tenant.c.gather_failures)).scalar_one())


def reset_gather_failures(connection: Connection) -> None:
    """Reset the count of failures, after a success."""
    connection.execute(update(tenant).values(gather_failures=0))


def suspend(connection: Connection, reason: str) -> None:
    """Suspend the tenant: it is not run until a worker is restarted."""
    connection.execute(update(tenant).values(suspended_because=reason))


def clear_suspension(connection: Connection) -> None:
    """Clear failures and suspension, because a worker starts."""
    connection.execute(update(tenant).values(suspended_because=None, gather_failures=0))


def suspended_because(connection: Connection) -> str | None:
    """Return why the tenant is suspended, or None if it is not."""
    reason: str | None = connection.execute(select(tenant.c.suspended_because)).scalar_one()
    return reason


@dataclass(frozen=True)
class PipelineState:
    """The state of a tenant's pipeline.

    ``current`` is the row of the run in progress, with ``done`` of ``total`` days of its stage; ``last_ended`` is the
    row of the last run that ended; ``last_outcome`` and ``last_at`` describe the run in progress or, if there is none,
    the last one that ended.
    """

    is_running: bool
    stage: str | None
    stage_date: date | None
    suspended_because: str | None
    last_ended: RowMapping | None
    last_outcome: str | None
    last_at: datetime | None
    current: RowMapping | None = None
    done: int = 0
    total: int = 0


def pipeline_state(connection: Connection) -> PipelineState:
    """Return the state of the tenant of this control database.

    Raises:
        StorageError: the database cannot be read.
    """
    row: Mapping[str, Any] = dict(connection.execute(select(tenant)).mappings().first() or {})
    # Leases use the clock of the server or, with an embedded database, of the host.
    is_embedded = connection.dialect.name == "sqlite"
    now = utc_now() if is_embedded else connection.execute(select(func.now())).scalar_one()
    running = is_held(row.get("lease_owner"), row.get("lease_expires_at"), now)
    ended = (
        connection.execute(select(runs).where(runs.c.ended_at.is_not(None)).order_by(runs.c.run_id.desc()).limit(1))
        .mappings()
        .first()
    )
    started = (
        connection.execute(select(runs).where(runs.c.ended_at.is_(None)).order_by(runs.c.run_id.desc()).limit(1))
        .mappings()
        .first()
    )
    current = started if running else None
    last_at = None if ended is None else ended["ended_at"]
    return PipelineState(
        is_running=running,
        stage=row.get("stage") if running else None,
        stage_date=row.get("stage_date") if running else None,
        suspended_because=row.get("suspended_because"),
        last_ended=ended,
        last_outcome="running" if running else (None if ended is None else ended["outcome"]),
        last_at=last_at if current is None else current["started_at"],
        current=current,
        done=row.get("stage_done", 0) if running else 0,
        total=row.get("stage_total", 0) if running else 0,
    )


@dataclass(frozen=True, slots=True)
class TenantHealth:
    """The state of a tenant: its days, its lease, its failures, its last run.

    ``topics_due`` is the number of days that wait for the topic overlay, ``lease_epoch`` how often the lease was taken.
    """

    pending: int
    calculated: int
    last_calculated: date | None
    topics_due: int
    is_running: bool
    lease_epoch: int
    gather_failures: int
    is_suspended: bool
    last_outcome: str | None
    last_ended_at: datetime | None


def read_health(connection: Connection) -> TenantHealth:
    """Return the health of the tenant of this control database.

    Raises:
        StorageError: the database cannot be read, or is not set up yet.
    """
    counts = count_days(connection)
    state = pipeline_state(connection)
    epoch, failures = connection.execute(select(tenant.c.lease_epoch, tenant.c.gather_failures)).one()
    ended = state.last_ended
    return TenantHealth(
        pending=counts.pending,
        calculated=counts.calculated,
        last_calculated=counts.last_calculated,
        topics_due=count_queued(connection, DayDataset.TOPICS),
        is_running=state.is_running,
        lease_epoch=epoch,
        gather_failures=failures,
        is_suspended=state.suspended_because is not None,
        last_outcome=None if ended is None else ended["outcome"],
        last_ended_at=None if ended is None else ended["ended_at"],
    )
