"""Retention: deletes days past the tenant's retention, and maintains the tables.

Days are deleted in one transaction; their files stay for a week, because readers hold lists of files. The tables are
maintained at most once a day.
"""

from __future__ import annotations

import logging
from datetime import date, timedelta
from typing import Final

from chargeback.errors import LeaseLost, StorageError
from chargeback.pipeline.partials import complete_partials
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.reports.closing.sealing import RETENTION_MARGIN, Documents, names_of_everything, seal_in
from chargeback.store.control import audit, events
from chargeback.store.control import days as day_states
from chargeback.store.control.catalogue import (
    add,
    end_days,
    end_table,
    every_file,
    give_up_history,
    has_expiring_history,
    move,
)
from chargeback.store.control.closings import Books, read_books
from chargeback.store.control.day_revisions import record_removal
from chargeback.store.control.days import DayDataset, delete_days, oldest_day
from chargeback.store.facts.tables import DAY_TABLES, DIMENSIONS_TABLE
from chargeback.store.facts.upkeep import (
    compacted_dimensions,
    listed_files,
    record_upkeep,
    remove_unnamed,
    settled_history,
    upkeep_is_due,
)
from chargeback.store.queries.partials import partial_kinds

log = logging.getLogger(__name__)

_SETTLED: Final = "its days are not gathered again"


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
        return  # the cause may be a wrong clock
    settings = run.tenant.settings
    try:
        books = _sealed_books(run)
        if books.start is not None and settings.retention_days < settings.lookback_days + RETENTION_MARGIN:
            run.record_error(
                f"retention deletes nothing: months are closed, and retention_days {settings.retention_days} should be "
                f"at least lookback_days + {RETENTION_MARGIN} = {settings.lookback_days + RETENTION_MARGIN}"
            )
            return
        _delete_expired(run, books)
        _delete_history(run, books)
        _delete_records(run)
        _upkeep(run)
    except LeaseLost:
        raise
    except StorageError as error:
        run.record_error(f"retention is incomplete and is tried again in the next run: {error}")


def _sealed_books(run: RunContext) -> Books:
    """Seal the closed months that cannot change any more because their days are not gathered again: retention deletes
    no day of a month that is not sealed. Return the books."""
    with run.store.control.read() as connection:
        books = read_books(connection)
    last = run.today - timedelta(days=run.tenant.settings.lookback_days)
    settled = [each.period for each in books.closed if each.seal is None and each.period.last_day < last]
    if not settled:
        return books
    with run.store.control.read() as connection:
        names = names_of_everything(connection)
    for period in settled:
        with run.lease.write(durable=True) as connection:
            documents = Documents(run.store.facts.place)
            seal_in(
                connection,
                documents,
                period,
                names,
                who="worker",
                reason=_SETTLED,
                now=run.now(),
                signing_key=run.tenant.closing.signing_key,
            )
    run.store.facts.changed()
    with run.store.control.read() as connection:
        return read_books(connection)


def _delete_expired(run: RunContext, books: Books) -> None:
    """Delete the days that are past retention, except those of months that are not closed yet."""
    facts = run.store.facts
    oldest = oldest_kept(run.today, run.tenant.settings.retention_days)
    if books.first_open is not None:
        oldest = min(oldest, books.first_open.start)
    with run.store.control.read() as connection:
        oldest_state = oldest_day(connection)
        stored = [day for name in DAY_TABLES for day in facts.load(connection)[name].days[:1]]
    if not any(day < oldest for day in (*stored, oldest_state or oldest)):
        return
    run.enter(Stage.RETENTION, oldest)
    with facts.commit(run.lease, run.now) as (connection, at):
        leaving = [state.tracking_date for state in day_states.read_days(connection) if state.tracking_date < oldest]
        for dataset in DayDataset:
            record_removal(connection, dataset, leaving, at)
        deleted = delete_days(connection, oldest)
        end_days(connection, DAY_TABLES, oldest, at, books.pins())
    log.info(
        "tenant %s: %d days before %s are past their retention, and were deleted", run.tenant.name, deleted, oldest
    )


def _delete_history(run: RunContext, books: Books) -> None:
    """Delete the earlier contents of days older than the tenant's history; their present rows stay, and so does what
    closings have pinned."""
    settings = run.tenant.settings
    days = settings.retention_days if settings.history_days is None else settings.history_days
    oldest = oldest_kept(run.today, min(days, settings.retention_days))
    with run.store.control.read() as connection:
        if not has_expiring_history(connection, oldest, books.pins()):
            return
    with run.lease.write() as connection:
        give_up_history(connection, oldest, run.now(), books.pins())
    run.store.facts.changed()


def _delete_records(run: RunContext) -> None:
    """Delete entries of the audit log and events that are too old."""
    with run.store.control.read() as connection:
        if not any(each.has_expired(connection, run.now()) for each in (audit, events)):
            return
    with run.lease.write() as connection:
        for each in (audit, events):
            each.delete_expired(connection, run.now())


def _upkeep(run: RunContext) -> None:
    facts = run.store.facts
    if not upkeep_is_due(facts.place, run.now()):
        return
    run.enter(Stage.RETENTION)
    if (register := compacted_dimensions(facts)) is not None:
        with facts.commit(run.lease, run.now) as (connection, at):
            end_table(connection, DIMENSIONS_TABLE, at)
            add(connection, [(DIMENSIONS_TABLE, None, register)], at)
    run.check()
    there = listed_files(facts)
    removed = remove_unnamed(facts, run.now(), there=there)
    if settled := settled_history(facts, run.now(), there=there):
        with run.lease.write(durable=True) as connection:
            move(connection, settled)
        facts.changed()
    with run.store.control.read() as connection:
        kept: dict[str, set[str]] = {}
        for each in every_file(connection, kept_only=True):
            kept.setdefault(each.table, set()).add(each.path)
    facts.partials.clean(partial_kinds(), kept)
    complete_partials(run)
    record_upkeep(facts.place, run.now())
    if removed:
        log.info(
            "tenant %s: upkeep removed %d unreferenced files and %d empty folders",
            *(run.tenant.name, removed.files, removed.folders),
        )
