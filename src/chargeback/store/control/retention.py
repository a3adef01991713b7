"""What the control database forgets when a day is past the tenant's retention."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection, delete, func, select

from chargeback.model.days import start_of_day
from chargeback.store.control.schema import days, grants, metadata

#: Every table that has a row for a day has it in this column.
_DAY = "tracking_date"


def oldest_day(connection: Connection) -> date | None:
    """The oldest day that has a state; none where no day has."""
    day: date | None = connection.execute(select(func.min(days.c.tracking_date))).scalar()
    return day


def delete_days(connection: Connection, before: date) -> int:
    """Delete everything about the days before ``before``, and grants that had ended by then; return the number of days
    that had a state."""
    forgotten = 0
    for table in metadata.sorted_tables:
        if _DAY in table.c:
            removed = connection.execute(delete(table).where(table.c[_DAY] < before)).rowcount
            forgotten += removed if table is days else 0
    connection.execute(delete(grants).where(grants.c.deleted_at < start_of_day(before)))
    return forgotten
