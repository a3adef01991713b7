"""Saved views: a page and its query, under a name that is unique in the tenant."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, RowMapping, delete, exists, func, insert, select, update

from chargeback.model.days import utc_now
from chargeback.store.control.inventory_lists import bytewise
from chargeback.store.control.schema import tenant, views


@dataclass(frozen=True)
class ViewWrite:
    """A view to write."""

    name: str
    page: str
    query: str


def list_views(connection: Connection) -> list[RowMapping]:
    """Return all views, by name."""
    return list(connection.execute(select(views).order_by(bytewise(connection, views.c.name))).mappings())


def lock_views(connection: Connection) -> int:
    """Return how many views there are; until the transaction ends, no other transaction changes them.

    SQLite has one writer anyway; on PostgreSQL a lock of the tenant's row serialises writers.
    """
    connection.execute(select(tenant.c.id).with_for_update())
    return connection.execute(select(func.count()).select_from(views)).scalar_one()


def is_taken(connection: Connection, name: str, besides: int | None = None) -> bool:
    """Return whether a view, other than ``besides``, has the name."""
    found = exists().where(views.c.name == name)
    if besides is not None:
        found = found.where(views.c.id != besides)
    return bool(connection.execute(select(found)).scalar())


def create_view(connection: Connection, view: ViewWrite, created_by: str) -> RowMapping:
    """Create a view and return it."""
    row = {**asdict(view), "created_by": created_by, "created_at": utc_now()}
    return connection.execute(insert(views).values(row).returning(views)).mappings().one()


def change_view(connection: Connection, view_id: int, view: ViewWrite) -> RowMapping | None:
    """Change a view and return it; return None if there is none with that id."""
    statement = update(views).where(views.c.id == view_id).values(**asdict(view)).returning(views)
    return connection.execute(statement).mappings().first()


def remove_view(connection: Connection, view_id: int) -> bool:
    """Remove a view; return whether it existed."""
    return connection.execute(delete(views).where(views.c.id == view_id)).rowcount > 0
