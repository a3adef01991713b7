"""What the control database of an earlier version says of the files of its tables, before it has a catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import Connection, delete, select, update

from chargeback.store.control.days import DayDataset
from chargeback.store.control.schema import dataset_days, days, revisions


@dataclass(frozen=True, slots=True)
class EarlierRevision:
    """A revision with the names of its files by table; None means those that the tables have."""

    number: int
    at: datetime
    rows: int
    files: Mapping[str, Sequence[str]] | None


def gathered_at(connection: Connection) -> dict[date, datetime | None]:
    """Return when the bill of each day was fetched."""
    return {row.tracking_date: row.gathered_at for row in connection.execute(select(days))}


def earlier_revisions(connection: Connection, dataset: DayDataset) -> dict[date, list[EarlierRevision]]:
    """Return the recorded revisions of each day, ascending; the last one may not have taken effect."""
    of_dataset = select(revisions).where(revisions.c.dataset == dataset)
    found: dict[date, list[EarlierRevision]] = {}
    for row in connection.execute(of_dataset.order_by(revisions.c.tracking_date, revisions.c.revision)):
        revision = EarlierRevision(row.revision, row.calculated_at, row.rows, row.files)
        found.setdefault(row.tracking_date, []).append(revision)
    return found


def confirmed_revisions(connection: Connection, dataset: DayDataset) -> dict[date, int]:
    """Return the number of the confirmed revision of each day that has a state."""
    of_dataset = select(dataset_days).where(dataset_days.c.dataset == dataset)
    return {row.tracking_date: row.revision for row in connection.execute(of_dataset)}


def delete_revision(connection: Connection, dataset: DayDataset, day: date, number: int) -> None:
    """Delete a revision that never took effect."""
    here = (revisions.c.dataset == dataset) & (revisions.c.tracking_date == day)
    connection.execute(delete(revisions).where(here, revisions.c.revision == number))


def without_total(connection: Connection) -> list[tuple[DayDataset, date, int, datetime]]:
    """Return the revisions from before sums were recorded: dataset, day, number and instant."""
    unknown = select(revisions).where(revisions.c.total.is_(None), revisions.c.rows > 0)
    return [
        (DayDataset(row.dataset), row.tracking_date, row.revision, row.calculated_at)
        for row in connection.execute(unknown)
    ]


def save_total(connection: Connection, dataset: DayDataset, day: date, number: int, amount: Decimal) -> None:
    """Record the sum of a revision."""
    here = (revisions.c.dataset == dataset) & (revisions.c.tracking_date == day)
    connection.execute(update(revisions).where(here, revisions.c.revision == number).values(total=f"{amount:f}"))


def forget_file_names(connection: Connection) -> None:
    """Forget the names of files that revisions had: the catalogue has them."""
    connection.execute(update(revisions).values(files=None))
