"""The facts as they were at an earlier instant: another choice of files, and nothing else.

Every query works on the files of a snapshot. The snapshot of an earlier instant has, for each day, the files of the
revision that was in force then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final

from sqlalchemy import Connection

from chargeback.errors import ForgottenDay
from chargeback.model.days import DayRange
from chargeback.model.money import render
from chargeback.store.control.day_revisions import (
    RETENTION,
    Revision,
    confirmed_revisions,
    read_day_revisions,
)
from chargeback.store.control.days import DatasetDay, DatasetState, DayDataset, DayState
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.history import PastFiles, file_names_of_day, past_files, same_content
from chargeback.store.facts.seen import ReadableTables
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    Snapshot,
)


@dataclass(frozen=True, slots=True)
class RevisedDataset:
    """A dataset whose days have revisions.

    Attributes:
        name: its name in the table of revisions.
        table: the table with its rows.
        usage: the table with its measurements.
        evidence: all tables that its rows were calculated from.
        payer: the columns of the identity that is charged.
    """

    name: DayDataset
    table: str
    usage: str
    evidence: tuple[str, ...]
    payer: tuple[str, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose files a revision names: the evidence, then the rows."""
        return (*self.evidence, self.table)


REVISED_CHARGEBACKS: Final = RevisedDataset(
    DayDataset.CHARGEBACKS,
    CHARGEBACKS_TABLE,
    USAGE_TABLE,
    (BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE),
    ("identity_id",),
)
REVISED_TOPICS: Final = RevisedDataset(
    DayDataset.TOPICS,
    TOPICS_TABLE,
    TOPIC_USAGE_TABLE,
    (BILLING_TABLE, TOPIC_USAGE_TABLE),
    ("cluster_resource_id", "topic_name"),
)
#: All of them by their names.
REVISED: Final[Mapping[str, RevisedDataset]] = {
    dataset.name: dataset for dataset in (REVISED_CHARGEBACKS, REVISED_TOPICS)
}
#: By which revisions the files of each table are chosen: the bill by those of the charges that were made from it.
REVISED_BY: Final = {name: dataset for dataset in (REVISED_TOPICS, REVISED_CHARGEBACKS) for name in dataset.tables}


@dataclass(frozen=True)
class KnownRevisions:
    """The revisions of a tenant's days: dataset → day → those that may have taken effect, ascending, and the number of
    the last confirmed one."""

    recorded: Mapping[str, Mapping[date, Sequence[Revision]]]
    confirmed: Mapping[str, Mapping[date, int]]

    @classmethod
    def read(cls, connection: Connection, within: DayRange | None = None) -> KnownRevisions:
        """Return the revisions of the days of a range, or of all."""
        recorded: dict[str, dict[date, list[Revision]]] = {name: {} for name in REVISED}
        for name, of_days in recorded.items():
            for revision in read_day_revisions(connection, name, within):
                of_days.setdefault(revision.tracking_date, []).append(revision)
        return cls(recorded, {name: confirmed_revisions(connection, name) for name in DayDataset})

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
        return {
            # A day past its retention has no state any more: all of its revisions took effect.
            day: those_that_took_effect(REVISED[dataset], known, confirmed.get(day), present)
            for day, known in self.recorded[dataset].items()
        }


def those_that_took_effect(
    dataset: RevisedDataset, known: Sequence[Revision], confirmed: int | None, present: Snapshot
) -> Sequence[Revision]:
    """Return the revisions of a day up to the ``confirmed`` one (None: all), and one more that its process committed,
    but did not live to confirm: the files of the day in ``present``, the table with the rows, are exactly its own."""
    if known and confirmed is not None and known[-1].revision > confirmed:
        stored = file_names_of_day(present, known[-1].tracking_date)
        return known if has_files(known[-1], dataset, stored) else known[:-1]
    return known


def has_files(revision: Revision, dataset: RevisedDataset, names: Sequence[str]) -> bool:
    """Return whether the rows of a revision are in files of exactly these names. One of an earlier version, whose files
    are not recorded, is in those that the table has."""
    return revision.files is None or same_content(revision.files.get(dataset.table, ()), names)


@dataclass(frozen=True)
class PastDays:
    """The days of a tenant at an earlier instant: the ``snapshots`` of its tables, and the ``states`` of the days that
    were calculated then."""

    snapshots: Mapping[str, Snapshot]
    states: Mapping[date, DayState]


def days_as_of(
    facts: ReadableTables, known: KnownRevisions, present: Mapping[str, Snapshot], as_of: datetime
) -> PastDays:
    """Return the days as they were at an instant. ``present`` has the snapshots of the tables now, read after the
    revisions.

    Raises:
        StorageError: a history cannot be read.
    """
    found = dict(present)
    states: dict[date, DayState] = {}
    for dataset in REVISED.values():
        in_force = known.in_force(dataset.name, as_of, present[dataset.table])
        for day, revision in in_force.items():
            states[day] = _state(states.get(day, DayState(day)), revision)
        for name in (name for name, by in REVISED_BY.items() if by == dataset):
            now = present[name] if name in present else facts.snapshot(name)
            found[name] = _snapshot(name, now, past_files(facts, name, now), in_force)
    return PastDays(found, states)


def _state(state: DayState, revision: Revision) -> DayState:
    """Return the state of a day with one of its datasets as it was."""
    if revision.cause == RETENTION:
        return state
    if revision.dataset == DayDataset.TOPICS:
        return replace(state, topics=DatasetDay(DatasetState.CURRENT, rows=revision.rows))
    fingerprint = revision.billing_fingerprint
    return replace(
        state,
        billing_gathered=True,
        resources_gathered=True,
        gathered_fingerprint=fingerprint,
        chargebacks=DatasetDay(
            DatasetState.CURRENT, fingerprint is not None, fingerprint, revision.rows, revision.revision
        ),
    )


def _snapshot(name: str, now: Snapshot, past: PastFiles, in_force: Mapping[date, Revision]) -> Snapshot:
    files: list[DayFile] = []
    gone = []
    for day, revision in sorted(in_force.items()):
        names = file_names_of_day(now, day) if revision.files is None else revision.files.get(name)
        found = past.find(day, names) if names is not None else None
        if found is not None:
            files += found
        elif names is not None or revision.rows:
            gone.append(forgotten(revision))
    return Snapshot(now.version, tuple(files), tuple(gone))


def forgotten(revision: Revision) -> ForgottenDay:
    """Return what is still known of a day whose files in a revision are no longer kept."""
    total = None if revision.total is None else render(revision.total)
    return ForgottenDay(revision.tracking_date, revision.revision, revision.rows, total)
