"""Deletes rows of days that are past the tenant's retention from the control database."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection, delete, func, select

from chargeback.model.days import start_of_day
from chargeback.store.control.schema import days, files, grants, metadata, revisions

#: The column with the day, in every table that has rows per day.
_DAY = "tracking_date"
#: What stays when a day is deleted: what was known of it, without its rows.
_KEPT = {revisions.name, files.name}


def oldest_day(connection: Connection) -> date | None:
    """Return the oldest day that has a state, or None if no day has."""
    day: date | None = connection.execute(select(func.min(days.c.tracking_date))).scalar()
    return day


def delete_days(connection: Connection, before: date) -> int:
    """Delete all rows of days before ``before``, and grants that had ended by then; return the number of days that had
    a state."""
    forgotten = 0
    for table in metadata.sorted_tables:
        if _DAY in table.c and table.name not in _KEPT:
            removed = connection.execute(delete(table).where(table.c[_DAY] < before)).rowcount
            forgotten += removed if table is days else 0
    connection.execute(delete(grants).where(grants.c.deleted_at < start_of_day(before)))
    return forgotten
