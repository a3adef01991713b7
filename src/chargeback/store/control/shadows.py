"""Which days of shadows are calculated, from which revisions, and what they would move. Their rows are files of tables
that nothing else reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, union

from chargeback.store.control.catalogue import NamedFile, end_days_of, files_of_table
from chargeback.store.control.schema import files, shadow_days

#: What the names of their tables begin with.
_PREFIX: Final = "shadow_"


@dataclass(frozen=True, slots=True)
class ShadowDay:
    """A day that is calculated.

    Attributes:
        revision: that of the real day, whose evidence it is calculated from.
        policies_hash: one hash for the policies of the shadow.
        moved: half of what changes for each identity.
    """

    tracking_date: date
    revision: int
    policies_hash: str
    billed: Decimal
    moved: Decimal


def table_of(name: str) -> str:
    """Return the table of the rows of a shadow."""
    return f"{_PREFIX}{name}"


def shadow_names(connection: Connection) -> list[str]:
    """Return the shadows that have days, or files of days that are forgotten."""
    named = func.substr(files.c.table_name, len(_PREFIX) + 1)
    of_files = select(named).where(files.c.table_name.startswith(_PREFIX, autoescape=True))
    return sorted(connection.execute(union(select(shadow_days.c.name), of_files)).scalars())


def read_shadow_days(connection: Connection, name: str) -> list[ShadowDay]:
    """Return the days of a shadow, ascending."""
    its = shadow_days.c
    rows = connection.execute(
        select(its.tracking_date, its.revision, its.policies_hash, its.billed, its.moved)
        .where(its.name == name)
        .order_by(its.tracking_date)
    )
    return [ShadowDay(*row[:3], Decimal(row.billed), Decimal(row.moved)) for row in rows]


def shadow_files(connection: Connection, name: str) -> list[NamedFile]:
    """Return the files of the rows of a shadow, by day."""
    return files_of_table(connection, table_of(name))


def stored_days(connection: Connection, name: str) -> set[date]:
    """Return the days for which a shadow has anything: what is recorded of them, or a file."""
    recorded = {each.tracking_date for each in read_shadow_days(connection, name)}
    return recorded | {each.day for each in shadow_files(connection, name) if each.day is not None}


def save_shadow_day(connection: Connection, name: str, day: ShadowDay) -> None:
    """Record a day, in the place of what was recorded of it."""
    forget_shadow_days(connection, name, [day.tracking_date])
    values = {"tracking_date": day.tracking_date, "revision": day.revision, "policies_hash": day.policies_hash}
    amounts = {"billed": f"{day.billed:f}", "moved": f"{day.moved:f}"}
    connection.execute(insert(shadow_days).values(name=name, **values, **amounts))


def forget_shadow_days(connection: Connection, name: str, days: Collection[date]) -> None:
    """Forget what is recorded of some days."""
    its = shadow_days.c
    connection.execute(delete(shadow_days).where(its.name == name, its.tracking_date.in_(days)))


def remove_shadow_days(connection: Connection, name: str, days: Collection[date]) -> None:
    """Remove days with their rows: nothing of them is kept."""
    forget_shadow_days(connection, name, days)
    end_days_of(connection, table_of(name), days)
