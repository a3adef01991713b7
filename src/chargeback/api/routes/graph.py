"""The graph of an organisation: a tree of its environments, resources and identities, with their costs."""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from fastapi import Query
from pydantic import Field, StringConstraints

from chargeback.access.caller import Right
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.routing import Routes
from chargeback.api.selecting import ComparingQuery, CostColumns, DatasetQuery
from chargeback.api.tenant_requests import Facts, FactsRequest
from chargeback.model.days import instants
from chargeback.reports.graph.tree import Leaves
from chargeback.reports.graph.view import (
    GraphAnswer,
    GraphDiffAnswer,
    GraphRequest,
    GraphTimeline,
    GraphView,
    TopicsNotFiltered,
    UnknownFocus,
    graph_diff,
    graph_of,
    graph_timeline,
    read_graph,
)
from chargeback.reports.periods import CalendarPeriod
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.selection import Selection

MOST_DEPTH = 5
MOST_CHILDREN = 100
#: Longer than any path of ids.
Focus = Annotated[str, StringConstraints(max_length=4096)]
_FOCUS = Field(
    default="",
    description="The `id` of a node, or the last part of it, such as `r:lkc-abc123`, for the most expensive node whose "
    "id ends with it. Empty: the organisation.",
    examples=["e:env-abc12"],
)
_LEAVES = Field(
    description="The children of resources: the `identities` that pay, the `topics` of clusters, or `none`. "
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
    """Parameters that choose a node and its descendants."""

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


router = Routes(prefix="/tenants/{tenant_name}/graph", tags=["Costs"])
_PROBLEMS = {404: "There is no such tenant, or no such node in the period."}


@router.get("", needs=Right.READ, problems=_PROBLEMS, keep=True)
def show_graph(request: Facts, params: Annotated[GraphQuery, Query()]) -> GraphAnswer:
    """Return the organisation as a tree of costs: environments, their resources, and the identities or topics of these.

    The cost of a node is the sum of the rows that its `filters` select. It is also the sum of its children, of `other`
    children, and of its `own` cost. Children that are not named are counted and summed in `other`. `…/search` finds
    nodes by name.
    """
    period, selection = _selected(params, request)
    view = _read(request, GraphRequest(selection, None, params.focus, params.leaves))
    return graph_of(request.tenant, view, period, params.depth, params.top)


@router.get("/diff", needs=Right.READ, problems=_PROBLEMS, keep=True)
def compare_graphs(request: Facts, params: Annotated[GraphDiffQuery, Query()]) -> GraphDiffAnswer:
    """Return the same tree with the costs of two periods: before, after, and which nodes are new or gone."""
    comparison = request.comparison(params)
    view = _read(request, GraphRequest(comparison.selection, comparison.previous, params.focus, params.leaves))
    return graph_diff(request.tenant, view, comparison.period, comparison.compared, params.depth, params.top)


@router.get("/timeline", needs=Right.READ, problems=_PROBLEMS, keep=True)
def show_timeline(request: Facts, params: Annotated[GraphTimelineQuery, Query()]) -> GraphTimeline:
    """Return the cost of one node of the graph over time. It sums to the cost of the node."""
    period, selection = _selected(params, request)
    view = _read(request, GraphRequest(selection, None, params.focus, params.leaves))
    unit, zone = params.time_bucket, params.zone
    return graph_timeline(request.tenant, request.reader, view, period, selection, unit, zone)


def _selected(params: GraphQuery | GraphTimelineQuery, request: FactsRequest) -> tuple[CalendarPeriod, Selection]:
    period = params.chosen_period(request.tenant.lookback_days, request.version.control.last_calculated)
    window = instants(period.start, period.end, params.zone)
    return period, replace(request.selection(params), window=window)


def _read(request: FactsRequest, asked: GraphRequest) -> GraphView:
    try:
        return read_graph(request.reader, request.tenant, asked)
    except UnknownFocus as error:
        raise NotFound(str(error)) from None
    except TopicsNotFiltered as error:
        raise InvalidRequest([InvalidParameter("leaves", str(error))]) from None
