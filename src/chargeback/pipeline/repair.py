"""Rebuild damaged tables from stored evidence.

A run first compares the fact files with their records: existence, size and row count; once a day, or before a
recalculation, also the digest of their content. Each loss is reported among the run's errors. A lost bill is gathered
again; chargebacks and topics are rebuilt from stored evidence. Results whose evidence is lost are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

from chargeback.errors import DamagedFacts, StorageError
from chargeback.pipeline.run_context import RunContext
from chargeback.store.control import days as day_states
from chargeback.store.control.catalogue import NamedFile, add, end_table, every_file
from chargeback.store.control.days import DayDataset
from chargeback.store.control.topics import queue_topics
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import check_content, check_size
from chargeback.store.facts.owner import claim
from chargeback.store.facts.places import LOG
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, DIMENSIONS_TABLE, SCHEMAS, TOPICS_TABLE
from chargeback.store.facts.upkeep import rebuilt_dimensions, record_upkeep, upkeep_is_due

#: Table → UTC day → the damage.
Losses = Mapping[str, Mapping[date, str]]

#: The name of a table's earlier contents in errors.
EARLIER: Final = "{} (earlier)"

_REMEDIES: Final = {
    BILLING_TABLE: "it is gathered again",
    CHARGEBACKS_TABLE: "they are calculated again",
    TOPICS_TABLE: "they are attributed again",
}
_TOO_OLD: Final = "the provider has no bills for days that old: restore it from a backup"
_HISTORY: Final = "the day cannot be shown as it was before; its present rows are not affected"
_EVIDENCE: Final = "the results calculated from it are kept; a recalculation of the day fetches it again"


def repair(run: RunContext) -> None:
    """Find lost data and schedule it to be rebuilt by the following stages.

    Raises:
        StorageError: the facts are missing completely, or cannot be read.
        LeaseLost: another process has taken over.
        Stopped: the run was asked to stop.
    """
    facts = run.store.facts
    with run.store.control.read() as connection:
        every = every_file(connection)
    if not every:
        _require_no_tables(run)
        claim(facts.place, run.store.owner)
        record_upkeep(facts.place, run.now())  # new tables need no upkeep for a day
        return
    named = [each for each in every if each.gone_at is None and each.table in SCHEMAS]
    losses = _losses(run, named)
    if losses:
        _require_files(run, len(named))
    claim(facts.place, run.store.owner)
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


def _require_no_tables(run: RunContext) -> None:
    """Check that the storage of a new database has no published tables.

    Raises:
        StorageError: it has some, which a first run would replace by empty ones; or a log cannot be read.
    """
    place = run.store.facts.place
    with translate_file_errors("facts"):
        logs = {found.path.partition("/")[0] for found in place.files() if f"/{LOG}/" in found.path}
    if not logs:
        return
    from chargeback.store.facts.published import files_in_log  # slow to import

    for name in (BILLING_TABLE, CHARGEBACKS_TABLE):
        if next(files_in_log(place, name), None) is not None:
            raise StorageError(
                f"the control database is new, but {place} has tables of {name}: restore the database from a backup, "
                "or its catalogue by `chargeback restore --catalogue-from-tables`; to start with empty storage, "
                "move the files away"
            )


def _require_files(run: RunContext, count: int) -> None:
    """Check that the storage of the facts is not empty, although the catalogue has files.

    Raises:
        StorageError: it is empty.
    """
    place = run.store.facts.place
    with translate_file_errors("facts"):
        is_empty = place.is_empty()
    if is_empty:
        raise StorageError(
            f"{count} files are recorded, but {place} is empty: is its disk mounted? "
            "Restore them from a backup; to start with empty storage, move the control database away too"
        )


def _losses(run: RunContext, named: Sequence[NamedFile]) -> Losses:
    """Return what is damaged. Superseded files cannot be rebuilt, so checking them once a day is enough."""
    facts, losses = run.store.facts, dict[str, dict[date, str]]()
    thorough = run.request.recalculate or upkeep_is_due(facts.place, run.now())
    with translate_file_errors("facts"):
        size_of = facts.place.sizes()
    for each in named:
        run.check()
        if each.day is None or (each.until is not None and not thorough):
            continue
        file = facts.day_file(each)
        try:
            with translate_file_errors(each.table):
                check_size(file, size_of)
                if thorough:
                    check_content(file)
        except DamagedFacts as error:
            name = each.table if each.until is None else EARLIER.format(each.table)
            losses.setdefault(name, {})[each.day] = error.message
    return losses


def _remedy(run: RunContext, name: str, day: date) -> str:
    if name == BILLING_TABLE and day not in run.window:
        return _TOO_OLD
    if name not in SCHEMAS:
        return _HISTORY
    return _REMEDIES.get(name, _EVIDENCE)


def _repair_dimensions(run: RunContext) -> None:
    """Rebuild the register of dimensions from the days if it is damaged."""
    facts = run.store.facts
    try:
        for file in facts.snapshot(DIMENSIONS_TABLE).files:
            with translate_file_errors(DIMENSIONS_TABLE):
                check_content(file)
    except DamagedFacts as error:
        run.record_error(f"{DIMENSIONS_TABLE}: {error.message}; the table is rebuilt from the days")
        register = rebuilt_dimensions(facts)
        with facts.commit(run.lease, run.now) as (connection, at):
            end_table(connection, DIMENSIONS_TABLE, at)
            add(connection, [(DIMENSIONS_TABLE, None, register)], at)
