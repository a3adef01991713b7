"""What has stood out in the costs of a tenant, as it was found last, and what was told of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime

from sqlalchemy import Connection, delete, insert, select, update

from chargeback.store.control.schema import anomalies, tenant

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
