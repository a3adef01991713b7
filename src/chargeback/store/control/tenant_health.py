"""The health of a tenant for monitoring systems, from its control database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection, select

from chargeback.store.control.days import DayDataset, count_days, count_queued
from chargeback.store.control.pipeline_state import pipeline_state
from chargeback.store.control.schema import tenant


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
