"""The anomalies found in the costs of a tenant, the events recorded for them, and the marks that people set on days.

A mark says why the costs of some days stand out, or will. Every change of a mark is recorded in the audit log, as made
by ``who``.
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

#: The state of an anomaly that is none any more: its days, or the days that they are compared with, have changed.
WITHDRAWN = "withdrawn"
MarkStatus = Literal["confirmed", "expected", "planned", "dismissed"]
CONFIRMED: Final = "confirmed"


@dataclass(frozen=True, slots=True)
class KnownAnomaly:
    """An anomaly: its first day, state and impact; the impact in its last event (``told``) and the time of its first
    event (``told_at``), None without one. ``scope`` is the key of the scope in which it was found; empty for all costs.
    """

    id: str
    first_date: date
    state: str
    impact: float
    told: float | None = None
    told_at: datetime | None = None
    scope: str = ""


def anomalies_revision(connection: Connection) -> int:
    """Return the revision of the facts in which anomalies were last searched; 0 before the first search."""
    return connection.execute(select(tenant.c.anomalies_revision)).scalar() or 0


def read_anomalies(connection: Connection) -> dict[str, KnownAnomaly]:
    """Return the stored anomalies, by id."""
    return {row.id: KnownAnomaly(**row._mapping) for row in connection.execute(select(anomalies))}


def save_anomalies(connection: Connection, found: Iterable[KnownAnomaly], revision: int, since: date) -> None:
    """Store what was found in a revision of the facts; delete anomalies that began before ``since``."""
    connection.execute(delete(anomalies).where(anomalies.c.first_date < since))
    for each in found:
        connection.execute(delete(anomalies).where(anomalies.c.id == each.id))
        connection.execute(insert(anomalies).values(**asdict(each)))
    connection.execute(update(tenant).values(anomalies_revision=revision))


@dataclass(frozen=True)
class MarkedDays:
    """Days of a series of costs, and what a person knows of them. The costs are those of the identity ``who`` or, with
    a cost ``category`` (else empty), of its value ``who``; of one product group, or of all (None)."""

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
    """Stored marked days, with the number and the time of the mark."""

    id: int
    created_at: datetime

    @property
    def days(self) -> DayRange:
        """The days that are marked."""
        return DayRange(self.start_date, self.end_date + ONE_DAY)

    @property
    def is_usual(self) -> bool:
        """Whether the days are put aside: they get no event, and no days are compared with them."""
        return self.status != CONFIRMED

    def is_about(self, who: str, product_category: str, category: str) -> bool:
        """Return whether the mark is about a series of costs."""
        is_its = (self.category, self.who) == (category, who)
        return is_its and self.product_category in (None, product_category)


def read_marks(connection: Connection) -> list[AnomalyMark]:
    """Return all marks, the newest first."""
    rows = connection.execute(select(anomaly_marks).order_by(anomaly_marks.c.id.desc()))
    return [AnomalyMark(**row._mapping) for row in rows]


def newest_mark(
    marks: Iterable[AnomalyMark], day: date, who: str, product_category: str, category: str
) -> AnomalyMark | None:
    """Return the first mark about a day of a series: the newest, if ``marks`` are in the order of `read_marks`."""
    return next((each for each in marks if each.is_about(who, product_category, category) and day in each.days), None)


def count_marks(connection: Connection) -> int:
    """Return the number of marks."""
    return connection.execute(select(func.count()).select_from(anomaly_marks)).scalar_one()


def find_mark(connection: Connection, number: int) -> AnomalyMark | None:
    """Return a mark, locked until the transaction ends; None if there is none with that number."""
    row = connection.execute(select(anomaly_marks).where(anomaly_marks.c.id == number).with_for_update()).first()
    return None if row is None else AnomalyMark(**row._mapping)


def add_mark(connection: Connection, new: MarkedDays, *, who: str = API) -> AnomalyMark:
    """Mark days, and return the mark."""
    values = asdict(new) | {"created_at": utc_now()}
    row = connection.execute(insert(anomaly_marks).values(values).returning(anomaly_marks)).one()
    record(connection, who, [AuditEntry(ANOMALY_MARKED, f"anomaly-mark/{row.id}", None, new.as_json())])
    return AnomalyMark(**row._mapping)


def remove_mark(connection: Connection, mark: AnomalyMark, *, who: str = API) -> None:
    """Remove a mark."""
    connection.execute(delete(anomaly_marks).where(anomaly_marks.c.id == mark.id))
    before = MarkedDays(**{name: getattr(mark, name) for name in MarkedDays.__dataclass_fields__})
    record(connection, who, [AuditEntry(ANOMALY_UNMARKED, f"anomaly-mark/{mark.id}", before.as_json(), None)])
