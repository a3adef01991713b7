"""The revisions of days: what each day contained from when on, and why it was replaced.

A revision is recorded in the transaction that makes its files those of the day.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, func, insert, or_, select

from chargeback.model.days import DayRange
from chargeback.store.control.days import DayDataset, save_dataset
from chargeback.store.control.schema import revisions

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
        policy_version: the hash of the version of the tenant's own policies that was in force; None where none was.
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
    policy_version: str | None = None


def _columns(revision: Revision) -> dict[str, Any]:
    values = asdict(revision)
    return {**values, **{name: None if values[name] is None else f"{values[name]:f}" for name in ("total", "moved")}}


def _revision(row: Row[Any]) -> Revision:
    values = dict(row._mapping)
    amounts = {name: None if values[name] is None else Decimal(values[name]) for name in ("total", "moved")}
    return Revision(**{**values, **amounts})


_RECORDED: Final = [revisions.c[each.name] for each in fields(Revision)]


def record_revision(connection: Connection, revision: Revision) -> None:
    """Record a new revision of a day."""
    connection.execute(insert(revisions).values(_columns(revision)))


def latest_revision(connection: Connection, dataset: str, day: date) -> Revision | None:
    """Return the present revision of a day, or None if it never had rows."""
    query = select(*_RECORDED).where(revisions.c.dataset == dataset, revisions.c.tracking_date == day)
    row = connection.execute(query.order_by(revisions.c.revision.desc()).limit(1)).first()
    return None if row is None else _revision(row)


def read_policy_versions(connection: Connection, since: date | None) -> dict[date, str | None]:
    """Return the version of the tenant's own policies that calculated each day with rows: all days with a version and,
    from a day on, also those without, ascending."""
    latest = select(revisions.c.tracking_date, func.max(revisions.c.revision).label("revision"))
    latest = latest.where(revisions.c.dataset == DayDataset.CHARGEBACKS).group_by(revisions.c.tracking_date)
    present = latest.subquery()
    its = revisions.c
    has_version = its.policy_version.is_not(None)
    query = (
        select(its.tracking_date, its.policy_version)
        .join(present, and_(its.tracking_date == present.c.tracking_date, its.revision == present.c.revision))
        .where(its.dataset == DayDataset.CHARGEBACKS, its.cause != RETENTION)
        .where(has_version if since is None else or_(has_version, its.tracking_date >= since))
        .order_by(its.tracking_date)
    )
    return {row.tracking_date: row.policy_version for row in connection.execute(query)}


def read_day_revisions(
    connection: Connection, dataset: str, within: DayRange | None = None, until: datetime | None = None
) -> list[Revision]:
    """Return the revisions of the days of a range, or of all, by day and number; with ``until`` those that were there
    at that instant."""
    query = select(*_RECORDED).where(revisions.c.dataset == dataset)
    if within is not None:
        query = query.where(revisions.c.tracking_date >= within.start, revisions.c.tracking_date < within.end)
    if until is not None:
        query = query.where(revisions.c.calculated_at <= until)
    ordered = query.order_by(revisions.c.tracking_date, revisions.c.revision)
    return [_revision(row) for row in connection.execute(ordered)]


def record_removal(connection: Connection, dataset: DayDataset, removed: Collection[date], at: datetime) -> None:
    """Record that days have no rows from the instant ``at`` on, because they are past their retention."""
    for day in sorted(removed):
        latest = latest_revision(connection, dataset, day)
        if latest is not None and latest.cause != RETENTION:
            number = latest.revision + 1
            record_revision(connection, Revision(dataset, day, number, at, RETENTION, total=Decimal(0)))
            save_dataset(connection, dataset, [day], revision=number)
