"""Rebuild damaged tables from stored evidence.

A run first compares the fact files with their records: existence, size and row count; once a day, or before a
recalculation, also the digest of their content. Each loss is reported among the run's errors. A lost bill is gathered
again; chargebacks and topics are rebuilt from stored evidence. Results whose evidence is lost are kept unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final

from chargeback.errors import DamagedFacts, StorageError
from chargeback.pipeline.revise import record_first_files
from chargeback.pipeline.run_context import RunContext
from chargeback.store.control import days as day_states
from chargeback.store.control.days import DayDataset, DayState
from chargeback.store.control.topics import queue_topics
from chargeback.store.facts.commits import translate_delta_errors
from chargeback.store.facts.files import check_file
from chargeback.store.facts.owner import claim
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    DAY_TABLES,
    DIMENSIONS_TABLE,
    HISTORY_TABLES,
    SCHEMAS,
    TOPICS_TABLE,
)
from chargeback.store.facts.upkeep import rebuild_dimensions, record_upkeep, upkeep_is_due

#: Table → UTC day → the damage.
Losses = Mapping[str, Mapping[date, str]]

_REMEDIES: Final = {
    BILLING_TABLE: "it is gathered again",
    CHARGEBACKS_TABLE: "they are calculated again",
    TOPICS_TABLE: "they are attributed again",
}
_TOO_OLD: Final = "the provider has no bills for days that old: restore it from a backup"
_HISTORY: Final = "the day cannot be shown as it was before; its present rows are not concerned"
_EVIDENCE: Final = "the results calculated from it are kept; a recalculation of the day fetches it again"


def repair(run: RunContext) -> None:
    """Find lost data and schedule it to be rebuilt by the following stages.

    Raises:
        StorageError: the facts are missing completely, or cannot be read.
        LeaseLost: another process has taken over.
        Stopped: the run was asked to stop.
    """
    _repair_logs(run)
    is_new = _is_new(run)
    run.store.facts.create()
    if is_new:
        record_upkeep(run.store.facts.place, run.now())  # new tables need none for a day
    claim(run.store.facts, run.store.owner)
    run.store.facts.read_ahead()
    record_first_files(run)
    losses = _losses(run)
    for name, of_days in losses.items():
        for day, trouble in sorted(of_days.items()):
            run.record_error(f"{day}: {name}: {trouble}; {_remedy(run, name, day)}")
    if losses:
        _schedule_rebuild(run, losses)
    _repair_dimensions(run)


def _schedule_rebuild(run: RunContext, losses: Losses) -> None:
    """Schedule damaged tables: bills are gathered again if their day is still in the window, results are
    recalculated."""
    with run.lease.write() as connection:
        for day in losses.get(BILLING_TABLE, ()):
            if day in run.window:
                day_states.save_day(connection, day, billing_gathered=False, gathered_fingerprint=None)
        day_states.mark_due(connection, DayDataset.CHARGEBACKS, list(losses.get(CHARGEBACKS_TABLE, ())))
        queue_topics(connection, list(losses.get(TOPICS_TABLE, ())))


def _repair_logs(run: RunContext) -> None:
    """Repair table logs whose last commit was truncated by a power failure."""
    for name in SCHEMAS:
        with translate_delta_errors(name):
            for trouble in run.store.facts.place.mend(name):
                run.record_error(f"{name}: {trouble}; it is set aside")


def _is_new(run: RunContext) -> bool:
    """Return whether the storage has no tables yet.

    Raises:
        StorageError: it has none any more, although days are recorded.
    """
    facts = run.store.facts
    if facts.exist():
        return False
    with run.store.control.read() as connection:
        known = sum(state.billing_lines > 0 for state in day_states.read_days(connection))
    if known:
        raise StorageError(
            f"{known} days are recorded, but {facts.place} has no fact tables: is its disk mounted? "
            "Restore them from a backup; to start with empty storage, move the control database away too"
        )
    return True


def _losses(run: RunContext) -> Losses:
    losses: dict[str, dict[date, str]] = defaultdict(dict)
    with run.store.control.read() as connection:
        known = day_states.read_days(connection)
    for name, day, trouble in (*_miscounted(run, known), *_damaged(run)):
        losses[name][day] = trouble
    return losses


def _miscounted(run: RunContext, known: list[DayState]) -> Iterator[tuple[str, date, str]]:
    """Return the days whose row count differs from the recorded one."""
    rows: dict[str, dict[date, int]] = {}
    for name in _REMEDIES:
        counts = rows[name] = defaultdict(int)
        for file in run.store.facts.snapshot(name).files:
            if file.day is not None:
                counts[file.day] += file.rows
    for state in known:
        recorded = {
            BILLING_TABLE: state.billing_lines if state.billing_gathered else None,
            CHARGEBACKS_TABLE: state.chargebacks.rows if state.chargebacks.is_current else None,
            TOPICS_TABLE: state.topics.rows if state.topics.is_current else None,
        }
        for name, count in recorded.items():
            there = rows[name][state.tracking_date]
            if count is not None and there != count:
                yield name, state.tracking_date, f"{count} rows were written, but {there} found"


def _damaged(run: RunContext) -> Iterator[tuple[str, date, str]]:
    facts = run.store.facts
    thorough = run.request.recalculate or upkeep_is_due(facts.place, run.now())
    # Superseded files cannot be made again: to look at them once a day is enough.
    for name in (*DAY_TABLES, *(HISTORY_TABLES.values() if thorough else ())):
        run.check()
        files = facts.snapshot(name).files
        if not files:
            continue
        with translate_delta_errors(name):
            size_of = facts.place.sizes(name)
        for file in files:
            try:
                with translate_delta_errors(name):
                    check_file(file, thorough=thorough, size_of=size_of)
            except DamagedFacts as error:
                if error.day is not None:
                    yield name, error.day, error.message


def _remedy(run: RunContext, name: str, day: date) -> str:
    if name == BILLING_TABLE and day not in run.window:
        return _TOO_OLD
    if name in HISTORY_TABLES.values():
        return _HISTORY
    return _REMEDIES.get(name, _EVIDENCE)


def _repair_dimensions(run: RunContext) -> None:
    """Rebuild the table of dimensions from the days if it is damaged."""
    try:
        for file in run.store.facts.snapshot(DIMENSIONS_TABLE).files:
            with translate_delta_errors(DIMENSIONS_TABLE):
                check_file(file, thorough=True)
    except DamagedFacts as error:
        run.record_error(f"{DIMENSIONS_TABLE}: {error.message}; the table is rebuilt from the days")
        rebuild_dimensions(run.store.facts, epoch=run.lease.epoch)
