"""The facts as they were at an earlier instant: another choice of files, and nothing else.

Every query works on the files of a snapshot. The snapshot of an earlier instant has those that the catalogue named
then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final

from sqlalchemy import Connection

from chargeback.errors import ForgottenDay
from chargeback.model.money import render
from chargeback.store.control.catalogue import files_as_of
from chargeback.store.control.day_revisions import RETENTION, Revision, read_day_revisions
from chargeback.store.control.days import DatasetDay, DatasetState, DayDataset, DayState
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    FactTables,
    Snapshots,
)


@dataclass(frozen=True, slots=True)
class RevisedDataset:
    """A dataset whose days have revisions.

    Attributes:
        name: its name in the table of revisions.
        table: the table with its rows.
        usage: the table with its measurements.
        evidence: all tables that its rows are calculated from.
        payer: the columns of the identity that is charged.
    """

    name: DayDataset
    table: str
    usage: str
    evidence: tuple[str, ...]
    payer: tuple[str, ...]


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
#: The dataset whose revisions number the files of each table: for the bill those of the charges made from it.
REVISED_BY: Final = {
    name: dataset for dataset in (REVISED_TOPICS, REVISED_CHARGEBACKS) for name in (*dataset.evidence, dataset.table)
}


@dataclass(frozen=True)
class PastDays:
    """The days of a tenant at an earlier instant: the ``snapshots`` of its tables, and the ``states`` of the days that
    were billed then."""

    snapshots: Snapshots
    states: Mapping[date, DayState]


def days_as_of(connection: Connection, facts: FactTables, as_of: datetime) -> PastDays:
    """Return the days as they were at an instant."""
    named = files_as_of(connection, as_of)
    in_force = {name: revisions_in_force(connection, name, as_of) for name in REVISED}
    gone: dict[str, list[ForgottenDay]] = {}
    for each in named:
        if each.gone_at is not None and each.day is not None and each.table in REVISED_BY:
            revision = in_force[REVISED_BY[each.table].name].get(each.day)
            known = ForgottenDay(each.day, 0, each.rows, None) if revision is None else forgotten(revision)
            gone.setdefault(each.table, []).append(known)
    snapshots = {
        name: replace(table, gone=tuple(gone.get(name, ())))
        for name, table in facts.snapshots_of(connection, named).items()
    }
    bills = {each.day: each for each in named if each.table == BILLING_TABLE and each.day is not None}
    states = {day: DayState(day, billing_gathered=True) for day in bills}
    for of_dataset in in_force.values():
        for day, revision in of_dataset.items():
            has_newer_bill = day in bills and bills[day].since > revision.calculated_at
            states[day] = _state(states.get(day, DayState(day)), revision, has_newer_bill=has_newer_bill)
    return PastDays(snapshots, dict(sorted(states.items())))


def revisions_in_force(connection: Connection, dataset: str, as_of: datetime) -> dict[date, Revision]:
    """Return the revision of each day that was in force at an instant: the last one until then."""
    return {each.tracking_date: each for each in read_day_revisions(connection, dataset, until=as_of)}


def forgotten(revision: Revision) -> ForgottenDay:
    """Return what is still known of a day whose files in a revision are no longer kept."""
    total = None if revision.total is None else render(revision.total)
    return ForgottenDay(revision.tracking_date, revision.revision, revision.rows, total)


def _state(state: DayState, revision: Revision, *, has_newer_bill: bool) -> DayState:
    """Return the state of a day with one of its datasets as it was: with a newer bill it was still to be derived."""
    if revision.cause == RETENTION:
        return state
    standing = DatasetState.DUE if has_newer_bill else DatasetState.CURRENT
    if revision.dataset == DayDataset.TOPICS:
        return replace(state, topics=DatasetDay(standing, rows=revision.rows))
    fingerprint = revision.billing_fingerprint
    return replace(
        state,
        billing_gathered=True,
        resources_gathered=True,
        gathered_fingerprint=fingerprint,
        chargebacks=DatasetDay(standing, fingerprint is not None, fingerprint, revision.rows, revision.revision),
    )
