"""Retention: deletes days past the tenant's retention, and maintains the tables.

A day is deleted in this order: its state, then its facts, one commit per table. A crash in between leaves rows without
state, which the next run deletes. The tables are maintained at most once a day.
"""

from __future__ import annotations

import logging
from datetime import date, timedelta

from chargeback.errors import LeaseLost, StorageError
from chargeback.pipeline.partials import complete_partials
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.store.control import days as day_states
from chargeback.store.control.audit import delete_expired, has_expired
from chargeback.store.control.day_revisions import record_removal
from chargeback.store.control.days import DayDataset
from chargeback.store.control.retention import delete_days, oldest_day
from chargeback.store.facts.parallel import side_by_side
from chargeback.store.facts.tables import DAY_TABLES, HISTORY_TABLES, SCHEMAS
from chargeback.store.facts.upkeep import CleanupStats, clean_table, record_upkeep, rewrite_dimensions, upkeep_is_due
from chargeback.store.queries.partials import partial_kinds

log = logging.getLogger(__name__)


def oldest_kept(today: date, retention_days: int) -> date:
    """Return the oldest UTC day that is kept."""
    return today - timedelta(days=retention_days)


def retain(run: RunContext) -> None:
    """Delete days past retention, and maintain the tables if this is due.

    A run that could not gather deletes nothing. Storage errors are recorded, and the next run tries again.

    Raises:
        LeaseLost: another process has taken over.
        Stopped: the run was asked to stop.
    """
    if run.record.gathering_error is not None:
        return  # the clock may be what is wrong
    try:
        _delete_expired(run, oldest_kept(run.today, run.tenant.settings.retention_days))
        _delete_history(run)
        _delete_audit_entries(run)
        _upkeep(run)
    except LeaseLost:
        raise
    except StorageError as error:
        run.record_error(f"retention is incomplete and is tried again in the next run: {error}")


def _delete_expired(run: RunContext, oldest: date) -> None:
    with run.store.control.read() as connection:
        oldest_state = oldest_day(connection)
    expired = [name for name in DAY_TABLES if any(day < oldest for day in run.store.facts.snapshot(name).days)]
    if not expired and (oldest_state is None or oldest_state >= oldest):
        return
    run.enter(Stage.RETENTION, oldest, total=len(expired))
    with run.lease.write() as connection:
        leaving = [state.tracking_date for state in day_states.read_days(connection) if state.tracking_date < oldest]
        for dataset in DayDataset:
            record_removal(connection, dataset, leaving, run.now())
        forgotten = delete_days(connection, oldest)
    for number, name in enumerate(expired, start=1):
        run.check()
        run.store.facts.delete_before(name, oldest, epoch=run.lease.epoch)
        run.report(Stage.RETENTION, oldest, number, len(expired))
    log.info("tenant %s: %d days before %s are past their retention and gone", run.tenant.name, forgotten, oldest)


def _delete_history(run: RunContext) -> None:
    """Delete what days older than the tenant's history had before; their present rows stay."""
    settings = run.tenant.settings
    days = settings.retention_days if settings.history_days is None else settings.history_days
    oldest = oldest_kept(run.today, min(days, settings.retention_days))
    for name in HISTORY_TABLES.values():
        if any(day < oldest for day in run.store.facts.snapshot(name).days):
            run.store.facts.delete_before(name, oldest, epoch=run.lease.epoch)


def _delete_audit_entries(run: RunContext) -> None:
    with run.store.control.read() as connection:
        if not has_expired(connection, run.now()):
            return
    with run.lease.write() as connection:
        delete_expired(connection, run.now())


def _upkeep(run: RunContext) -> None:
    facts, epoch = run.store.facts, run.lease.epoch
    if not upkeep_is_due(facts.place, run.now()):
        return
    run.enter(Stage.RETENTION, total=len(SCHEMAS))
    rewrite_dimensions(facts, epoch=epoch)

    def clean(name: str) -> CleanupStats:
        run.check()
        return clean_table(facts, name, epoch=epoch)

    removed = sum(side_by_side(clean, list(SCHEMAS)), CleanupStats())
    run.report(Stage.RETENTION, None, len(SCHEMAS), len(SCHEMAS))
    facts.partials.clean(partial_kinds())
    complete_partials(run)
    record_upkeep(facts.place, run.now())
    if removed:
        log.info(
            "tenant %s: upkeep removed %d files, %d leftovers of writers that were killed and %d empty folders",
            *(run.tenant.name, removed.files, removed.leftovers, removed.folders),
        )
