"""The revisions of days: what each day contained from when on, why it was replaced, and in which files it is kept.

A revision is recorded before its files are committed, and confirmed after (``dataset_days.revision``). A process that
dies in between leaves an unconfirmed revision; whether it took effect is known by the files that the table has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from chargeback.model.days import DayRange
from chargeback.store.control.days import DayDataset, save_dataset
from chargeback.store.control.schema import dataset_days, days, revisions

FIRST: Final = "first"
BILL_CHANGED: Final = "bill_changed"
POLICY_CHANGED: Final = "policy_changed"
METRICS_RETURNED: Final = "metrics_returned"
MEMBERS_CHANGED: Final = "members_changed"
MANUAL: Final = "manual"
REPAIR: Final = "repair"
RETENTION: Final = "retention"
CAUSES: Final = (
    FIRST,
    BILL_CHANGED,
    POLICY_CHANGED,
    METRICS_RETURNED,
    MEMBERS_CHANGED,
    MANUAL,
    REPAIR,
    RETENTION,
)

#: Table → the names of the files of one day.
FileNames = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of one day.

    Attributes:
        dataset: ``chargebacks`` or ``topics``.
        revision: 1 for the first content of the day.
        calculated_at: from when on the day has this content.
        run_id: the run that calculated it; None if it is unknown, because an earlier version did.
        cause: one of :data:`CAUSES`.
        billing_fingerprint: the fingerprint of the bill.
        policies_hash: one hash for all policies that the day's product types have.
        rows: how many rows the day has.
        total: the sum of their amounts.
        moved: half the sum of what changed for each identity (or topic) since the revision before.
        files: the files of the rows and of the evidence; None means those that the tables have.
    """

    dataset: str
    tracking_date: date
    revision: int
    calculated_at: datetime
    cause: str
    run_id: int | None = None
    billing_fingerprint: str | None = None
    policies_hash: str | None = None
    rows: int = 0
    total: Decimal | None = None
    moved: Decimal | None = None
    files: FileNames | None = field(default_factory=dict)


def _columns(revision: Revision) -> dict[str, Any]:
    values = asdict(revision)
    files = revision.files
    texts = {name: None if values[name] is None else f"{values[name]:f}" for name in ("total", "moved")}
    return {**values, **texts, "files": None if files is None else {name: list(each) for name, each in files.items()}}


def _revision(row: Row[Any]) -> Revision:
    values = dict(row._mapping)
    amounts = {name: None if values[name] is None else Decimal(values[name]) for name in ("total", "moved")}
    return Revision(**{**values, **amounts})


def _is(revision: Revision) -> list[ColumnElement[bool]]:
    return [
        revisions.c.dataset == revision.dataset,
        revisions.c.tracking_date == revision.tracking_date,
        revisions.c.revision == revision.revision,
    ]


def record_revision(connection: Connection, revision: Revision) -> None:
    """Record a revision, in the place of one of the same number that never took effect."""
    connection.execute(delete(revisions).where(*_is(revision)))
    connection.execute(insert(revisions).values(_columns(revision)))


def record_files(connection: Connection, revision: Revision, files: FileNames, total: Decimal | None = None) -> None:
    """Record the files of a revision, and the ``total`` if it is not known yet."""
    amounts = {} if total is None else {"total": f"{total:f}"}
    names = {name: list(each) for name, each in files.items()}
    connection.execute(update(revisions).where(*_is(revision)).values(files=names, **amounts))


def revisions_of_day(connection: Connection, dataset: str, day: date) -> list[Revision]:
    """Return the recorded revisions of a day, ascending; the last one may be unconfirmed."""
    query = select(revisions).where(revisions.c.dataset == dataset, revisions.c.tracking_date == day)
    return [_revision(row) for row in connection.execute(query.order_by(revisions.c.revision))]


def read_day_revisions(connection: Connection, dataset: str, within: DayRange | None = None) -> list[Revision]:
    """Return the recorded revisions of the days of a range, or of all, by day and number."""
    query = select(revisions).where(revisions.c.dataset == dataset)
    if within is not None:
        query = query.where(revisions.c.tracking_date >= within.start, revisions.c.tracking_date < within.end)
    ordered = query.order_by(revisions.c.tracking_date, revisions.c.revision)
    return [_revision(row) for row in connection.execute(ordered)]


def without_files(connection: Connection) -> list[Revision]:
    """Return the revisions whose files are not recorded, because an earlier version made them."""
    return [_revision(row) for row in connection.execute(select(revisions).where(revisions.c.files.is_(None)))]


def confirmed_revisions(connection: Connection, dataset: DayDataset) -> dict[date, int]:
    """Return the number of the confirmed revision of each day that has a state."""
    here = (dataset_days.c.dataset == dataset) & (dataset_days.c.tracking_date == days.c.tracking_date)
    query = select(days.c.tracking_date, dataset_days.c.revision).select_from(days.outerjoin(dataset_days, here))
    return {day: number or 0 for day, number in connection.execute(query)}


def record_removal(connection: Connection, dataset: DayDataset, removed: Collection[date], now: datetime) -> None:
    """Record and confirm that days have no rows from ``now`` on, because they are past their retention."""
    numbers = confirmed_revisions(connection, dataset)
    for day in sorted(removed):
        if number := numbers.get(day, 0):
            record_revision(connection, Revision(dataset, day, number + 1, now, RETENTION, total=Decimal(0)))
            save_dataset(connection, dataset, [day], revision=number + 1)
