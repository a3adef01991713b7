"""What has stood out in the costs of a tenant, as it was found last, and what was told of it.

What people know of days on which costs stand out, or will.

Every change is recorded in the audit log, as made by ``who``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Final, Literal

from sqlalchemy import Connection, delete, func, insert, select, update

from chargeback.model.days import ONE_DAY, DayRange, utc_now
from chargeback.store.control.audit import ANOMALY_MARKED, ANOMALY_UNMARKED, API, AuditEntry, record
from chargeback.store.control.schema import anomalies, anomaly_marks, tenant

#: What stood out and does not any more, by what is known now: of its days, or of those that they are compared with.
WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class KnownAnomaly:
    """Something that stood out: its first day, its state and impact, and which impact was told and when; None if it was
    not told. ``scope`` tells those within the scope of a sink apart; it is empty for those of all costs."""

    id: str
    first_date: date
    state: str
    impact: float
    told: float | None = None
    told_at: datetime | None = None
    scope: str = ""


def anomalies_revision(connection: Connection) -> int:
    """Return of which revision of the facts it is known what stands out; 0 before the first look."""
    return connection.execute(select(tenant.c.anomalies_revision)).scalar() or 0


def read_anomalies(connection: Connection) -> dict[str, KnownAnomaly]:
    """Return what is known, by its id."""
    return {row.id: KnownAnomaly(**row._mapping) for row in connection.execute(select(anomalies))}


def save_anomalies(connection: Connection, found: Iterable[KnownAnomaly], revision: int, since: date) -> None:
    """Record what was found in a revision of the facts; what began before a day is forgotten."""
    connection.execute(delete(anomalies).where(anomalies.c.first_date < since))
    for each in found:
        connection.execute(delete(anomalies).where(anomalies.c.id == each.id))
        connection.execute(insert(anomalies).values(**asdict(each)))
    connection.execute(update(tenant).values(anomalies_revision=revision))


MarkStatus = Literal["confirmed", "expected", "planned", "dismissed"]
CONFIRMED: Final = "confirmed"


@dataclass(frozen=True)
class MarkedDays:
    """Days of the costs of an identity or, with a cost ``category`` (else empty), of one of its values, for a product
    group, or for all of them; and what is known of them."""

    category: str
    who: str
    product_category: str | None
    status: MarkStatus
    start_date: date
    end_date: date
    note: str
    created_by: str

    def as_json(self) -> dict[str, Any]:
        """Return it as the audit log shows it."""
        return asdict(self) | {"start_date": f"{self.start_date}", "end_date": f"{self.end_date}"}


@dataclass(frozen=True)
class AnomalyMark(MarkedDays):
    """The same, with its number and when it was made."""

    id: int
    created_at: datetime

    @property
    def days(self) -> DayRange:
        """The days that are marked."""
        return DayRange(self.start_date, self.end_date + ONE_DAY)

    @property
    def is_usual(self) -> bool:
        """Whether the days are put aside: nobody is told, and nothing is compared with them."""
        return self.status != CONFIRMED

    def is_about(self, who: str, product_category: str, category: str) -> bool:
        """Return whether it is about a series of costs."""
        is_its = (self.category, self.who) == (category, who)
        return is_its and self.product_category in (None, product_category)


def read_marks(connection: Connection) -> list[AnomalyMark]:
    """Return all marks, the newest first."""
    rows = connection.execute(select(anomaly_marks).order_by(anomaly_marks.c.id.desc()))
    return [AnomalyMark(**row._mapping) for row in rows]


def newest_mark(
    marks: Iterable[AnomalyMark], day: date, who: str, product_category: str, category: str
) -> AnomalyMark | None:
    """Return the first of the marks that is about a day of a series."""
    return next((each for each in marks if each.is_about(who, product_category, category) and day in each.days), None)


def count_marks(connection: Connection) -> int:
    """Return how many there are."""
    return connection.execute(select(func.count()).select_from(anomaly_marks)).scalar_one()


def add_mark(connection: Connection, new: MarkedDays, *, who: str = API) -> AnomalyMark:
    """Mark days, and return the mark."""
    values = asdict(new) | {"created_at": utc_now()}
    row = connection.execute(insert(anomaly_marks).values(values).returning(anomaly_marks)).one()
    record(connection, who, [AuditEntry(ANOMALY_MARKED, f"anomaly-mark/{row.id}", None, new.as_json())])
    return AnomalyMark(**row._mapping)


def find_mark(connection: Connection, number: int) -> AnomalyMark | None:
    """Return a mark, locked until the transaction ends; None if there is none with that number."""
    row = connection.execute(select(anomaly_marks).where(anomaly_marks.c.id == number).with_for_update()).first()
    return None if row is None else AnomalyMark(**row._mapping)


def remove_mark(connection: Connection, mark: AnomalyMark, *, who: str = API) -> None:
    """Remove a mark."""
    connection.execute(delete(anomaly_marks).where(anomaly_marks.c.id == mark.id))
    before = MarkedDays(**{name: getattr(mark, name) for name in MarkedDays.__dataclass_fields__})
    record(connection, who, [AuditEntry(ANOMALY_UNMARKED, f"anomaly-mark/{mark.id}", before.as_json(), None)])
