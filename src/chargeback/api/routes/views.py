"""Saved views. Callers who may see the whole tenant share them; callers with a scope have views of their own."""

from typing import Annotated

from fastapi import Body, Path, Query
from pydantic import Field, StringConstraints
from sqlalchemy import RowMapping
from starlette.responses import Response

from chargeback.access.caller import Caller, Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.executor import RequestContext
from chargeback.api.parameters import Author, CommonParameters, Note, StrictModel
from chargeback.api.problems import Conflict, NotFound
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Change, Control
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.store.control import views as view_store
from chargeback.store.control.views import ViewWrite

#: The maximum number of views of a caller.
MOST_VIEWS = 1000


PageName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
QueryText = Annotated[
    str,
    StringConstraints(max_length=8000, pattern=r"^[!-~]*$"),
    Field(
        description="The page's query, without the question mark, as in an address: anything but printable ASCII "
        "is percent-encoded.",
        examples=["period=30d&tag:team=payments"],
    ),
]


class ViewBody(StrictModel):
    """A view to create, or the new version of one."""

    name: Note = Field(
        description="The name of the view, unique among those that the caller sees.", examples=["Payments"]
    )
    page: PageName = Field(description="The page of the view.", examples=["costs"])
    query: QueryText = ""

    def write(self) -> ViewWrite:
        """Return the view as a write to the store."""
        return ViewWrite(self.name, self.page, self.query)


class NewView(ViewBody):
    """A view to save."""

    created_by: Author = Field(default="api", description="Who created the view.")


class ViewItem(ResponseModel):
    """A saved view."""

    id: str = Field(examples=["3"])
    name: str = Field(examples=["Payments"])
    page: str = Field(examples=["costs"])
    query: str = Field(examples=["period=30d&tag:team=payments"])
    created_by: str = Field(examples=["alice"])
    created_at: Instant


class ViewList(ResponseModel):
    """All views of a tenant."""

    items: list[ViewItem]


router = Routes(prefix="/tenants/{tenant_name}/views", tags=["Views"])

_NO_VIEW = {404: "There is no such tenant or view."}
_TAKEN = {409: "Another view has that name, or there are too many."}

ViewId = Annotated[str, Path(description="The `id` of a view.", pattern="^[0-9]{1,9}$")]


@router.get("", needs=Right.READ)
def list_views(request: Control, caller: CallerDep, _params: Annotated[CommonParameters, Query()]) -> ViewList:
    """Return all saved views by name; callers with a scope get their own."""
    owner = _owner(caller, request.context)
    return ViewList(items=[_item(row) for row in view_store.list_views(request.connection, owner)])


@router.post("", status_code=201, needs=Right.READ, answer="The new view.", problems=_TAKEN)
def create_view(request: Change, caller: CallerDep, new: Annotated[NewView, Body()]) -> ViewItem:
    """Save a page and its query under a name, which is unique among the views that the caller sees."""
    owner = _owner(caller, request.context)
    author = caller.signature(new.created_by)
    with request.writing() as connection:
        count = view_store.lock_views(connection, owner)
        if view_store.is_taken(connection, new.name, owner):
            raise _taken(new)
        if count >= MOST_VIEWS:
            raise Conflict(f"There are {MOST_VIEWS:,} views already; remove some.")
        view = view_store.create_view(connection, new.write(), author, who=caller.name)
    return _item(view)


@router.put(
    "/{view_id}",
    needs=Right.READ,
    answer="The changed view.",
    problems={**_NO_VIEW, 409: "Another view has that name."},
)
def change_view(
    request: Change,
    caller: CallerDep,
    view_id: ViewId,
    new: Annotated[ViewBody, Body()],
) -> ViewItem:
    """Change the name, the page and the query of a view."""
    owner = _owner(caller, request.context)
    with request.writing() as connection:
        view_store.lock_views(connection, owner)
        # A caller with a scope may have a view of the same name: each keeps it until it is renamed.
        name = view_store.name_of_view(connection, int(view_id), owner)
        if name not in {None, new.name} and view_store.is_taken(connection, new.name, owner):
            raise _taken(new)
        row = view_store.change_view(connection, int(view_id), new.write(), who=caller.name, owner=owner)
        if row is None:
            raise _missing(view_id)
    return _item(row)


@router.delete(
    "/{view_id}",
    needs=Right.READ,
    answer="The view is removed.",
    only=(*COMMON_STATUSES, 403),
    problems=_NO_VIEW,
)
def remove_view(request: Change, caller: CallerDep, view_id: ViewId) -> Response:
    """Remove a view."""
    owner = _owner(caller, request.context)
    with request.writing() as connection:
        if not view_store.remove_view(connection, int(view_id), who=caller.name, owner=owner):
            raise _missing(view_id)
    return Response(status_code=204)


def _owner(caller: Caller, context: RequestContext) -> str | None:
    """Return the owner of the views that the caller sees; None for the shared views."""
    return None if context.scope is None else caller.name


def _taken(view: ViewBody) -> Conflict:
    return Conflict(f"There is already a view called {view.name[:80]!r}; choose another name, or change that one.")


def _missing(view_id: str) -> NotFound:
    return NotFound(f"There is no view {view_id}.")


def _item(row: RowMapping) -> ViewItem:
    return ViewItem(**{**row, "id": str(row["id"])})
