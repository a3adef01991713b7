"""The facts as they were at an earlier instant: another choice of files, and nothing else.

Every query works on the files of a snapshot. The snapshot of an earlier instant has, for each day, the files of the
revision that was in force then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from chargeback.errors import ForgottenDay
from chargeback.model.money import render
from chargeback.store.control.day_revisions import (
    CHARGEBACK_REVISIONS,
    RETENTION,
    TOPIC_REVISIONS,
    Revision,
    confirmed_revisions,
    read_day_revisions,
)
from chargeback.store.control.days import DayState
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.history import PastFiles, content_key, past_files
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    FactTables,
    Snapshot,
)

#: The table with the rows of each revised dataset.
ROWS_TABLE: Final = {CHARGEBACK_REVISIONS: CHARGEBACKS_TABLE, TOPIC_REVISIONS: TOPICS_TABLE}
#: By which revisions the files of each table are chosen.
_REVISED_BY: Final = {
    BILLING_TABLE: CHARGEBACK_REVISIONS,
    USAGE_TABLE: CHARGEBACK_REVISIONS,
    MEMBERS_TABLE: CHARGEBACK_REVISIONS,
    CHARGEBACKS_TABLE: CHARGEBACK_REVISIONS,
    TOPIC_USAGE_TABLE: TOPIC_REVISIONS,
    TOPICS_TABLE: TOPIC_REVISIONS,
}


@dataclass(frozen=True)
class KnownRevisions:
    """The revisions of a tenant's days: dataset → day → those that may have taken effect, ascending, and the number of
    the last confirmed one."""

    recorded: Mapping[str, Mapping[date, Sequence[Revision]]]
    confirmed: Mapping[str, Mapping[date, int]]

    @classmethod
    def read(cls, connection: Connection) -> KnownRevisions:
        """Return all revisions."""
        recorded: dict[str, dict[date, list[Revision]]] = {name: {} for name in ROWS_TABLE}
        for name, of_days in recorded.items():
            for revision in read_day_revisions(connection, name):
                of_days.setdefault(revision.tracking_date, []).append(revision)
        return cls(recorded, {name: confirmed_revisions(connection, name) for name in ROWS_TABLE})

    def in_force(self, dataset: str, as_of: datetime, present: Snapshot) -> dict[date, Revision]:
        """Return the revision of each day that was in force at an instant; ``present`` is the table with the rows."""
        found = {}
        for day, known in self.effective(dataset, present).items():
            earlier = [revision for revision in known if revision.calculated_at <= as_of]
            if earlier:
                found[day] = earlier[-1]
        return found

    def effective(self, dataset: str, present: Snapshot) -> dict[date, Sequence[Revision]]:
        """Return the revisions of each day that took effect: confirmed ones, and one whose process died between its
        commit and its confirmation."""
        confirmed = self.confirmed[dataset]
        files = _by_day(present.files)
        found: dict[date, Sequence[Revision]] = {}
        for day, known in self.recorded[dataset].items():
            # A day past its retention has no state any more: all of its revisions took effect.
            is_open = day in confirmed and known[-1].revision > confirmed[day]
            if is_open and not took_effect(known[-1], ROWS_TABLE[dataset], files.get(day, [])):
                found[day] = known[:-1]
            else:
                found[day] = known
        return found


def took_effect(revision: Revision, table: str, stored: Sequence[str]) -> bool:
    """Return whether an unconfirmed revision was committed: ``stored``, the files of the day, are exactly its own."""
    if revision.files is None:
        return True
    return [content_key(name) for name in revision.files.get(table, ())] == [content_key(name) for name in stored]


@dataclass(frozen=True)
class PastDays:
    """The days of a tenant at an earlier instant: the ``snapshots`` of its tables, and the ``states`` of the days that
    were calculated then."""

    snapshots: Mapping[str, Snapshot]
    states: Mapping[date, DayState]


def days_as_of(facts: FactTables, known: KnownRevisions, present: Mapping[str, Snapshot], as_of: datetime) -> PastDays:
    """Return the days as they were at an instant. ``present`` has the snapshots of the tables now, read after the
    revisions.

    Raises:
        StorageError: a history cannot be read.
    """
    found = dict(present)
    states: dict[date, DayState] = {}
    for dataset, rows_table in ROWS_TABLE.items():
        in_force = known.in_force(dataset, as_of, present[rows_table])
        for day, revision in in_force.items():
            states[day] = _state(states.get(day, DayState(day)), revision)
        for name in (name for name, by in _REVISED_BY.items() if by == dataset):
            now = present[name] if name in present else facts.snapshot(name)
            found[name] = _snapshot(name, now, past_files(facts, name, now), in_force)
    return PastDays(found, states)


def _state(state: DayState, revision: Revision) -> DayState:
    """Return the state of a day with one of its datasets as it was."""
    if revision.cause == RETENTION:
        return state
    if revision.dataset == TOPIC_REVISIONS:
        return replace(state, topic_attribution_calculated=True, topic_rows=revision.rows)
    return replace(
        state,
        billing_gathered=True,
        resources_gathered=True,
        chargeback_calculated=True,
        gathered_fingerprint=revision.billing_fingerprint,
        calculated_fingerprint=revision.billing_fingerprint,
        chargeback_rows=revision.rows,
        revision=revision.revision,
    )


def _snapshot(name: str, now: Snapshot, past: PastFiles, in_force: Mapping[date, Revision]) -> Snapshot:
    files: list[DayFile] = []
    gone = []
    present = _by_day(now.files)
    for day, revision in sorted(in_force.items()):
        names = present.get(day, []) if revision.files is None else revision.files.get(name)
        found = past.find(day, names) if names is not None else None
        if found is not None:
            files += found
        elif names is not None or revision.rows:
            gone.append(_forgotten(revision))
    return Snapshot(now.version, tuple(files), tuple(gone))


def _forgotten(revision: Revision) -> ForgottenDay:
    total = None if revision.total is None else render(revision.total)
    return ForgottenDay(revision.tracking_date, revision.revision, revision.rows, total)


def _by_day(files: Sequence[DayFile]) -> dict[date, list[str]]:
    found: dict[date, list[str]] = {}
    for file in files:
        if file.day is not None and file.rows:
            found.setdefault(file.day, []).append(Path(file.path).name)
    return found
