"""Views that people have saved: a page and its query, under a name that is unique in the tenant."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, RowMapping, delete, exists, func, insert, select, update

from chargeback.model.days import utc_now
from chargeback.store.control.inventory_lists import bytewise
from chargeback.store.control.schema import views


@dataclass(frozen=True)
class ViewWrite:
    """What a view shall be."""

    name: str
    page: str
    query: str


def list_views(connection: Connection) -> list[RowMapping]:
    """Return all views, by name."""
    return list(connection.execute(select(views).order_by(bytewise(connection, views.c.name))).mappings())


def count_views(connection: Connection) -> int:
    """Return how many views there are."""
    return connection.execute(select(func.count()).select_from(views)).scalar_one()


def create_view(connection: Connection, view: ViewWrite, created_by: str) -> RowMapping | None:
    """Return the new view; None if there is one of that name."""
    if _is_taken(connection, view.name):
        return None
    row = {**asdict(view), "created_by": created_by, "created_at": utc_now()}
    return connection.execute(insert(views).values(row).returning(views)).mappings().one()


def is_taken_by_another(connection: Connection, view_id: int, name: str) -> bool:
    """Return whether another view than that one has the name."""
    return _is_taken(connection, name, besides=view_id)


def change_view(connection: Connection, view_id: int, view: ViewWrite) -> RowMapping | None:
    """Return the view as it is now; None if there is none with that id."""
    statement = update(views).where(views.c.id == view_id).values(**asdict(view)).returning(views)
    return connection.execute(statement).mappings().first()


def remove_view(connection: Connection, view_id: int) -> bool:
    """Return whether there was such a view; there is none now."""
    return connection.execute(delete(views).where(views.c.id == view_id)).rowcount > 0


def _is_taken(connection: Connection, name: str, besides: int | None = None) -> bool:
    found = exists().where(views.c.name == name)
    return bool(connection.execute(select(found if besides is None else found.where(views.c.id != besides))).scalar())
