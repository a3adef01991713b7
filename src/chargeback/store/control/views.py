"""Saved views: a page and its query, under a name that is unique among the views that its author sees.

Every change is recorded in the audit log, as made by ``who``. With an ``owner``, the views of others do not exist:
neither their names nor their number has an effect.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, exists, func, insert, select, true, update

from chargeback.model.days import utc_now
from chargeback.store.control.audit import API, VIEW_CHANGED, VIEW_CREATED, VIEW_REMOVED, AuditEntry, record
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.inventory_lists import bytewise
from chargeback.store.control.schema import views


@dataclass(frozen=True)
class ViewWrite:
    """A view to write."""

    name: str
    page: str
    query: str


def list_views(connection: Connection, owner: str | None = None) -> list[RowMapping]:
    """Return all views, by name."""
    asked = select(views).where(_owned(owner)).order_by(bytewise(connection, views.c.name))
    return list(connection.execute(asked).mappings())


def lock_views(connection: Connection, owner: str | None = None) -> int:
    """Return how many views there are; until the transaction ends, no other transaction changes any."""
    lock_tenant(connection)
    return connection.execute(select(func.count()).select_from(views).where(_owned(owner))).scalar_one()


def is_taken(connection: Connection, name: str, owner: str | None = None) -> bool:
    """Return whether a view has the name."""
    return bool(connection.execute(select(exists().where(views.c.name == name, _owned(owner)))).scalar())


def name_of_view(connection: Connection, view_id: int, owner: str | None = None) -> str | None:
    """Return the name of a view; None if there is none with that id."""
    asked = select(views.c.name).where(views.c.id == view_id, _owned(owner))
    name: str | None = connection.execute(asked).scalar()
    return name


def create_view(connection: Connection, view: ViewWrite, created_by: str, *, who: str = API) -> RowMapping:
    """Create a view and return it."""
    row = {**asdict(view), "created_by": created_by, "created_at": utc_now()}
    created = connection.execute(insert(views).values(row).returning(views)).mappings().one()
    record(connection, who, [AuditEntry(VIEW_CREATED, f"view/{created['id']}", None, asdict(view))])
    return created


def change_view(
    connection: Connection, view_id: int, view: ViewWrite, *, who: str = API, owner: str | None = None
) -> RowMapping | None:
    """Change a view and return it; return None if there is none with that id."""
    before = _written(connection, view_id, owner)
    if before is None:
        return None
    if before != view:
        record(connection, who, [AuditEntry(VIEW_CHANGED, f"view/{view_id}", asdict(before), asdict(view))])
    statement = update(views).where(views.c.id == view_id).values(**asdict(view)).returning(views)
    return connection.execute(statement).mappings().first()


def remove_view(connection: Connection, view_id: int, *, who: str = API, owner: str | None = None) -> bool:
    """Remove a view; return whether it existed."""
    before = _written(connection, view_id, owner)
    if before is None:
        return False
    record(connection, who, [AuditEntry(VIEW_REMOVED, f"view/{view_id}", asdict(before), None)])
    return connection.execute(delete(views).where(views.c.id == view_id)).rowcount > 0


def _owned(owner: str | None) -> ColumnElement[bool]:
    return true() if owner is None else views.c.created_by == owner


def _written(connection: Connection, view_id: int, owner: str | None) -> ViewWrite | None:
    """Return what is in a view, locked until the transaction ends."""
    columns = (views.c.name, views.c.page, views.c.query)
    asked = select(*columns).where(views.c.id == view_id, _owned(owner))
    row = connection.execute(asked.with_for_update()).first()
    return None if row is None else ViewWrite(*row)
