"""The graph of an organisation: what is in what, and what it costs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.graph import (
    GraphAnswer,
    GraphDiffAnswer,
    GraphDiffQuery,
    GraphQuery,
    GraphTimeline,
    GraphTimelineQuery,
)
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import instants
from chargeback.model.money import render
from chargeback.service.graph import Shown, shown
from chargeback.service.graph_view import (
    GraphRequest,
    GraphView,
    TopicsNotFiltered,
    UnknownFocus,
    change_json,
    cost_json,
    cost_text,
    identity_names,
    part_json,
    placed_json,
    read_graph,
    timeline,
)
from chargeback.service.tenant_view import TenantView
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.version import DataVersion

router = Routes(prefix="/tenants/{tenant_name}/graph", tags=["Costs"])
_PROBLEMS = {404: "There is no such tenant, or no such node in the period."}


@router.get("", response_model=GraphAnswer, needs=Right.READ, problems=_PROBLEMS, keep=True)
def show_graph(request: Facts, params: Annotated[GraphQuery, Query()]) -> Response:
    """Return the organisation as a tree of costs: environments, what is in them, and who pays or which topics they
    have.

    Every cost is the sum of the rows that the `filters` of the node select, and of its children, `other` ones and what
    is its `own`. Children that are not named are counted and summed in `other`. `…/search` finds nodes by name.
    """
    tenant = request.tenant
    reader = request.reader
    version = request.version
    period, selection = _selected(params, tenant, version)
    view = _read(reader, tenant, GraphRequest(selection, None, params.focus, params.leaves))
    return json_response(_dates(period, tenant) | _nodes(tenant, view, params.depth, params.top, cost_json))


@router.get("/diff", response_model=GraphDiffAnswer, needs=Right.READ, problems=_PROBLEMS, keep=True)
def compare_graphs(request: Facts, params: Annotated[GraphDiffQuery, Query()]) -> Response:
    """Return the same tree with the costs of two periods: before, after, and what is new or gone."""
    tenant = request.tenant
    reader = request.reader
    version = request.version
    asked = params.comparison(tenant.lookback_days, version.control.last_calculated)
    view = _read(reader, tenant, GraphRequest(asked.selection, asked.previous, params.focus, params.leaves))
    compared = {
        "compared_start_date": asked.compared and asked.compared.start,
        "compared_end_date": asked.compared and asked.compared.end,
    }
    own = {"start_date": asked.period.start, "end_date": asked.period.end, "currency": tenant.currency}
    return json_response(own | compared | _nodes(tenant, view, params.depth, params.top, change_json))


@router.get("/timeline", response_model=GraphTimeline, needs=Right.READ, problems=_PROBLEMS, keep=True)
def show_timeline(request: Facts, params: Annotated[GraphTimelineQuery, Query()]) -> Response:
    """Return the cost of one node of the graph over time. It sums to the cost of the node."""
    tenant = request.tenant
    reader = request.reader
    version = request.version
    period, selection = _selected(params, tenant, version)
    view = _read(reader, tenant, GraphRequest(selection, None, params.focus, params.leaves))
    sums = timeline(reader, view, selection, params.time_bucket, params.zone)
    items = [{"time": time, "amount": render(amount)} for time, amount in sums.items()]
    own = {
        "path": _path(tenant, view),
        "amount": cost_text(view.focus.units[0]),
        "items": items,
    }
    return json_response(_dates(period, tenant) | own)


def _selected(
    params: GraphQuery | GraphTimelineQuery, tenant: TenantView, version: DataVersion
) -> tuple[Any, Selection]:
    last = version.control.last_calculated
    period = params.chosen_period(tenant.lookback_days, last)
    selection = params.selection(tenant.lookback_days, last)
    return period, replace(selection, window=instants(period.start, period.end, params.zone))


def _read(reader: TenantReader, tenant: TenantView, asked: GraphRequest) -> GraphView:
    try:
        return read_graph(reader, tenant, asked)
    except UnknownFocus as error:
        raise NotFound(str(error)) from None
    except TopicsNotFiltered as error:
        raise InvalidRequest([InvalidParameter("leaves", str(error))]) from None


def _dates(period: Any, tenant: TenantView) -> dict[str, Any]:
    return {"start_date": period.start, "end_date": period.end, "currency": tenant.currency}


def _nodes(
    tenant: TenantView, view: GraphView, depth: int, top: int, costs: Callable[[Shown], Mapping[str, Any]]
) -> dict[str, Any]:
    listed = shown(view.focus, depth, top)
    names = identity_names(tenant, [each.node for each in listed])
    nodes = [{**placed_json(each, view, names), **costs(each)} for each in listed]
    return {"path": _path(tenant, view), "nodes": nodes}


def _path(tenant: TenantView, view: GraphView) -> list[dict[str, Any]]:
    path = view.focus.path()
    names = identity_names(tenant, path)
    return [part_json(each, view, names) for each in path]
