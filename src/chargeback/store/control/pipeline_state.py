"""The state of a tenant's runs in the control database, for processes that only display it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from chargeback.model.days import utc_now
from chargeback.store.control.lease import is_held
from chargeback.store.control.schema import runs, tenant


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
    running = is_held(row.get("lease_owner"), row.get("lease_expires_at"), _now(connection))
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


def _now(connection: Connection) -> datetime:
    """Return the time by the clock of leases: the server's or, with an embedded database, the host's."""
    if connection.dialect.name == "sqlite":
        return utc_now()
    return connection.execute(select(func.now())).scalar_one()
