"""Saved views: everybody who may see the whole of a tenant sees and changes them; who sees a part, those of his own."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy import Connection, RowMapping
from starlette.responses import Response

from chargeback.access.caller import Caller
from chargeback.access.rights import Right
from chargeback.api.conditional import ControlDep
from chargeback.api.dependencies import CallerDep, ContextDep, TenantDep
from chargeback.api.documentation import ALWAYS, documented
from chargeback.api.parameters import body, no_parameters, query
from chargeback.api.problems import Conflict, NotFound
from chargeback.api.responses import json_response
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.api.schemas.views import MOST_VIEWS, NewView, ViewBody, ViewItem, ViewList
from chargeback.model.days import render_instant
from chargeback.service.executor import RequestContext
from chargeback.store.control import views as view_store

router = APIRouter(prefix="/tenants/{tenant_name}/views", tags=["Views"])

_NO_VIEW = {404: "There is no such tenant or view."}
_TAKEN = {409: "Another view has that name, or there are too many."}

ViewId = Annotated[str, Path(description="The `id` of a view.", pattern="^[0-9]{1,9}$")]


@router.get("", response_model=ViewList, **documented(needs=Right.READ, query=TenantsQuery, etag=True))
async def list_views(
    control: ControlDep, caller: CallerDep, _params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """Return all saved views by name; a caller with a scope gets those of his own."""
    owner = _owner(caller, control.context)
    return await control.of_anything(
        lambda connection: json_response({"items": [_item(row) for row in view_store.list_views(connection, owner)]})
    )


@router.post(
    "",
    status_code=201,
    response_model=ViewItem,
    **documented(needs=Right.READ, body=NewView, answer="The new view.", problems=_TAKEN),
)
async def create_view(
    tenant: TenantDep, context: ContextDep, caller: CallerDep, new: Annotated[NewView, body(NewView)]
) -> Response:
    """Save a page and its query under a name, which is unique among the views that the caller sees."""
    owner = _owner(caller, context)

    def _create(connection: Connection) -> dict[str, Any]:
        count = view_store.lock_views(connection, owner)
        if view_store.is_taken(connection, new.name, owner):
            raise _taken(new)
        if count >= MOST_VIEWS:
            raise Conflict(f"There are {MOST_VIEWS:,} views already; remove some.")
        author = caller.signature(new.created_by)
        return _item(view_store.create_view(connection, new.write(), author, who=caller.name))

    return json_response(await context.write_control(tenant, _create), status=201)


@router.put(
    "/{view_id}",
    response_model=ViewItem,
    **documented(
        needs=Right.READ,
        body=ViewBody,
        answer="The changed view.",
        problems={**_NO_VIEW, 409: "Another view has that name."},
    ),
)
async def change_view(
    tenant: TenantDep,
    context: ContextDep,
    caller: CallerDep,
    view_id: ViewId,
    new: Annotated[ViewBody, body(ViewBody)],
) -> Response:
    """Change the name, the page and the query of a view."""
    owner = _owner(caller, context)

    def _change(connection: Connection) -> dict[str, Any]:
        view_store.lock_views(connection, owner)
        # Somebody with a scope may have given a view of his own the same name: each keeps it until it is renamed.
        name = view_store.name_of_view(connection, int(view_id), owner)
        if name not in {None, new.name} and view_store.is_taken(connection, new.name, owner):
            raise _taken(new)
        row = view_store.change_view(connection, int(view_id), new.write(), who=caller.name, owner=owner)
        if row is None:
            raise _missing(view_id)
        return _item(row)

    return json_response(await context.write_control(tenant, _change))


@router.delete(
    "/{view_id}",
    status_code=204,
    response_class=Response,
    **documented(needs=Right.READ, answer="There is no such view any more.", only=(*ALWAYS, 403), problems=_NO_VIEW),
    dependencies=[no_parameters()],
)
async def remove_view(tenant: TenantDep, context: ContextDep, caller: CallerDep, view_id: ViewId) -> Response:
    """Remove a view."""
    owner = _owner(caller, context)

    def _remove(connection: Connection) -> bool:
        return view_store.remove_view(connection, int(view_id), who=caller.name, owner=owner)

    if not await context.write_control(tenant, _remove):
        raise _missing(view_id)
    return Response(status_code=204)


def _owner(caller: Caller, context: RequestContext) -> str | None:
    """Return whose views the caller sees, None if everybody's."""
    return None if context.scope is None else caller.name


def _taken(view: ViewBody) -> Conflict:
    return Conflict(f"There is already a view called {view.name[:80]!r}; choose another name, or change that one.")


def _missing(view_id: str) -> NotFound:
    return NotFound(f"There is no view {view_id}.")


def _item(row: RowMapping) -> dict[str, Any]:
    return {**row, "id": str(row["id"]), "created_at": render_instant(row["created_at"])}
