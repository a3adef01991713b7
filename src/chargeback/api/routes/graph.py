"""The graph of an organisation: what is in what, and what it costs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

from fastapi import Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.costs import ComparingQuery
from chargeback.api.schemas.datasets import DatasetQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import instants
from chargeback.model.money import render
from chargeback.reports.answers import ResponseModel, Sum
from chargeback.reports.graph.tree import Kind, Leaves, Shown, shown
from chargeback.reports.graph.view import (
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
from chargeback.reports.tenant_view import TenantView
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.version import DataVersion

MOST_DEPTH = 5
MOST_CHILDREN = 100
#: Longer than any path of ids.
Focus = Annotated[str, StringConstraints(max_length=4096)]
_FOCUS = Field(
    default="",
    description="The `id` of a node, or the last part of one, such as `r:lkc-abc123`: then the most expensive node "
    "that ends so. Empty: the organisation.",
    examples=["e:env-abc12"],
)
_LEAVES = Field(
    description="What resources are divided into: the `identities` that pay, the `topics` of clusters, or `none`. "
    "Topics can only be filtered by product, environment, cluster and resource.",
)
_DEPTH = Field(default=2, ge=0, le=MOST_DEPTH, description="How many levels below the focus are named.")
_TOP = Field(default=20, ge=1, le=MOST_CHILDREN, description="How many children each node names.")


class _NodeColumns(CostColumns):
    """Parameters that choose a node of the graph."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    focus: Focus = _FOCUS
    leaves: Annotated[Leaves, _LEAVES] = "identities"


class _TreeColumns(_NodeColumns):
    """Parameters that choose a node and what is named below it."""

    depth: int = _DEPTH
    top: int = _TOP


class GraphQuery(_TreeColumns, DatasetQuery):
    """Parameters of the graph."""


class GraphDiffQuery(_TreeColumns, ComparingQuery):
    """Parameters of the graph that is compared with another period."""


class GraphTimelineQuery(_NodeColumns, DatasetQuery):
    """Parameters of the timeline of one node."""

    time_bucket: Literal["day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks begin on Monday."
    )


class GraphPart(ResponseModel):
    """A node by its names."""

    id: str = Field(description="The path to the node; empty for the organisation.", examples=["e:env-abc12/r:lkc-1"])
    kind: Kind
    value: str | None = Field(description="The id that rows have; null in no environment, and for the organisation.")
    name: str | None
    type: str | None = Field(description="The type of a resource or an identity.", examples=["kafka_cluster"])


class PlacedPart(GraphPart):
    """A node in its place."""

    parent: str | None = Field(description="The `id` of the node above it; null for the focus.")
    children: int = Field(description="How many it has, named or not.")
    rows: Literal["chargebacks", "topic-attributions"] = Field(description="The list that has its rows.")
    filters: dict[str, list[str]] = Field(
        description="The filters of that list, and of its aggregate, that select exactly the rows of the node, beside "
        "the period and the filters of the request."
    )


class GraphOthers(ResponseModel):
    """The children that are not named."""

    count: int
    amount: Sum


class GraphNode(PlacedPart):
    """A node with its cost: the sum of its children, named or not, and of what is its own."""

    amount: Sum
    own: Sum = Field(
        description="What belongs to the node and to none of its children: with `topics`, what no topic of a cluster "
        "has. It is negative while topics are still attributed from an earlier bill."
    )
    other: GraphOthers | None


class GraphAnswer(ResponseModel):
    """Nodes, level by level, each level by its cost; the edges are the `parent` of each node."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    path: list[GraphPart] = Field(description="From the organisation to the focus.")
    nodes: list[GraphNode]


class Changed(ResponseModel):
    """An amount in two periods."""

    before: Sum
    after: Sum
    delta: Sum


class ChangedOthers(Changed):
    """The children that are not named."""

    count: int


class GraphDiffNode(PlacedPart, Changed):
    """A node, and the edge to it, in both periods."""

    own: Changed
    state: Literal["same", "changed", "new", "gone"] = Field(
        description="`new` and `gone`: only one of the periods has rows of it."
    )
    other: ChangedOthers | None


class GraphDiffAnswer(ResponseModel):
    """Nodes, level by level, each level by the larger of its two costs."""

    start_date: date
    end_date: date
    compared_start_date: date | None = Field(description="Null without another period: then everything is new.")
    compared_end_date: date | None
    currency: str = Field(examples=["USD"])
    path: list[GraphPart]
    nodes: list[GraphDiffNode]


class TimelinePoint(ResponseModel):
    """The cost of one unit of time."""

    time: str = Field(examples=["2026-01-31"])
    amount: Sum


class GraphTimeline(ResponseModel):
    """The cost of one node over time; units without rows are left out."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    path: list[GraphPart]
    amount: Sum
    items: list[TimelinePoint]


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
