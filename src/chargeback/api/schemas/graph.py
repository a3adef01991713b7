"""The graph of an organisation."""

from datetime import date
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.common import ResponseModel, Sum
from chargeback.api.schemas.costs import ComparingQuery
from chargeback.api.schemas.datasets import DatasetQuery
from chargeback.service.graph import Kind, Leaves
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

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
