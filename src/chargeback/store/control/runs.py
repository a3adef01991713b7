"""Runs, and what a tenant carries from one run to the next: consecutive failures and suspension."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select, update

from chargeback.model.days import utc_now
from chargeback.store.control.schema import runs, tenant

_KEEP = timedelta(days=90)


def start_run(connection: Connection, epoch: int) -> int:
    """Record the start of a run and give its number; runs whose process died are recorded as interrupted, and those
    that ended long ago are forgotten."""
    now = utc_now()
    connection.execute(update(runs).where(runs.c.ended_at.is_(None)).values(ended_at=now, outcome="interrupted"))
    connection.execute(delete(runs).where(runs.c.ended_at < now - _KEEP))
    inserted = connection.execute(insert(runs).values(lease_epoch=epoch, started_at=now, outcome="running", errors=[]))
    (run_id,) = inserted.inserted_primary_key or (0,)
    return int(run_id)


def finish_run(connection: Connection, run_id: int, *, outcome: str, errors: list[str], counts: dict[str, int]) -> None:
    """Record how a run ended; ``counts`` are columns of the runs table."""
    connection.execute(
        update(runs).where(runs.c.run_id == run_id).values(ended_at=utc_now(), outcome=outcome, errors=errors, **counts)
    )


def close_open_run(connection: Connection, epoch: int, *, outcome: str, error: str) -> None:
    """Record the end of the run of an epoch whose own process could not."""
    changed = connection.execute(
        update(runs)
        .where(runs.c.lease_epoch == epoch, runs.c.ended_at.is_(None))
        .values(ended_at=utc_now(), outcome=outcome, errors=[error])
    )
    if (
        changed.rowcount == 0
        and connection.execute(select(runs.c.run_id).where(runs.c.lease_epoch == epoch)).first() is None
    ):
        now = utc_now()
        connection.execute(
            insert(runs).values(lease_epoch=epoch, started_at=now, ended_at=now, outcome=outcome, errors=[error])
        )


def count_gather_failure(connection: Connection) -> int:
    """One more consecutive failure to gather; how many there are now."""
    connection.execute(update(tenant).values(gather_failures=tenant.c.gather_failures + 1))
    return int(connection.execute(select(tenant.c.gather_failures)).scalar_one())


def reset_gather_failures(connection: Connection) -> None:
    """A success forgets the failures before it."""
    connection.execute(update(tenant).values(gather_failures=0))


def suspend(connection: Connection, reason: str) -> None:
    """No more runs for this tenant until a worker starts anew."""
    connection.execute(update(tenant).values(suspended_because=reason))


def clear_suspension(connection: Connection) -> None:
    """A worker starts: failures and suspension are forgotten."""
    connection.execute(update(tenant).values(suspended_because=None, gather_failures=0))


def suspended_because(connection: Connection) -> str | None:
    """Why the tenant is suspended, or none when it is not."""
    reason: str | None = connection.execute(select(tenant.c.suspended_because)).scalar_one()
    return reason


def last_finished(connection: Connection) -> datetime | None:
    """When the last run ended that came to its own end, well or badly; runs that were cut off do not count."""
    ended: datetime | None = connection.execute(
        select(runs.c.ended_at)
        .where(runs.c.outcome.in_(("completed", "completed_with_errors", "failed")))
        .order_by(runs.c.run_id.desc())
        .limit(1)
    ).scalar()
    return ended
