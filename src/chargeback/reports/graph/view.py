"""The graph of an organisation for a request: read from the facts and the inventory, with names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field

from chargeback.model.days import InstantRange
from chargeback.model.money import SHARED_PLACES, from_units
from chargeback.reports.answers import Counted, ResponseModel, Sum
from chargeback.reports.flow import charged_costs, topic_costs_by_cluster
from chargeback.reports.graph.tree import Kind, Leaves, Node, Shown, Units, build, filters_of, find, shown
from chargeback.reports.periods import CalendarPeriod
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.topic_costs import of_topics
from chargeback.store.control.inventory_lists import IDENTITIES, Lineage, Named, names_of, read_lineages
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.keys import ByTime, bucket
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import ColumnFilter, Selection


class UnknownFocus(LookupError):
    """The period has no such node."""


class TopicsNotFiltered(ValueError):
    """Topics cannot be filtered as the request says; the message has the filters."""


@dataclass(frozen=True)
class GraphRequest:
    """A request for a graph: the selected costs, the other period, the focus, and the kind of the children of
    resources."""

    selection: Selection
    previous: InstantRange | None
    focus: str
    leaves: Leaves


@dataclass(frozen=True)
class GraphView:
    """The requested node with its descendants, and the resources in the inventory."""

    focus: Node
    known: Mapping[str, Lineage]


class GraphPart(ResponseModel):
    """A node with its id and names."""

    id: str = Field(description="The path to the node; empty for the organisation.", examples=["e:env-abc12/r:lkc-1"])
    kind: Kind
    value: str | None = Field(
        description="The id in rows; null for resources without an environment, and for the organisation."
    )
    name: str | None
    type: str | None = Field(description="The type of a resource or an identity.", examples=["kafka_cluster"])

    @classmethod
    def of(cls, node: Node, view: GraphView, identities: Mapping[str, Named], **more: Any) -> Self:
        """Return a node with its names; ``more`` are further fields."""
        name, type_ = None, None
        if node.kind == "identity" and (person := identities.get(node.value or "")):
            name, type_ = person.name, person.type
        elif node.kind in {"environment", "resource"} and (resource := view.known.get(node.value or "")):
            name, type_ = resource.name, resource.type
        return cls(id=node.id, kind=node.kind, value=node.value, name=name, type=type_, **more)


class PlacedPart(GraphPart):
    """A node with its position in the tree."""

    parent: str | None = Field(description="The `id` of the node above it; null for the focus.")
    children: int = Field(description="The number of its children, named or not.")
    rows: Literal["chargebacks", "topic-attributions"] = Field(description="The list that has its rows.")
    filters: dict[str, list[str]] = Field(
        description="The filters of that list, and of its aggregate, that select exactly the rows of the node, in "
        "addition to the period and the filters of the request."
    )

    @classmethod
    def at(cls, each: Shown, view: GraphView, identities: Mapping[str, Named], **costs: Any) -> Self:
        """Return a node with its position and its ``costs``."""
        return cls.of(
            each.node,
            view,
            identities,
            parent=each.parent,
            children=len(each.node.children),
            rows="topic-attributions" if each.node.kind == "topic" else "chargebacks",
            filters=filters_of(each.node, view.known),
            **costs,
        )


class GraphOthers(ResponseModel):
    """The children that are not named."""

    count: int
    amount: Sum


class GraphNode(PlacedPart):
    """A node with its cost: the sum of its children, named or not, and of its own cost."""

    amount: Sum
    own: Sum = Field(
        description="The cost that belongs to the node and to none of its children: with `topics`, the cost of a "
        "cluster that no topic has. It is negative while topics are still attributed from an earlier bill."
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


class ChangedOthers(Changed, Counted):
    """The children that are not named."""


class GraphDiffNode(Changed, PlacedPart):
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
    currency: str = Field(examples=["USD"])
    compared_start_date: date | None = Field(description="Null without another period: then everything is new.")
    compared_end_date: date | None
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


def read_graph(reader: TenantReader, tenant: TenantView, asked: GraphRequest) -> GraphView:
    """Return the requested node.

    Raises:
        UnknownFocus: there is no such node.
        TopicsNotFiltered: topics were requested, with filters that do not apply to them.
        QueryTimeout: the query was cancelled.
        StorageError: the facts or the inventory cannot be read.
    """
    topics = []
    if asked.leaves == "topics":
        selection, ignored = of_topics(asked.selection)
        if ignored:
            raise TopicsNotFiltered(f"topics cannot be filtered by {', '.join(ignored)}")
        topics = topic_costs_by_cluster(reader, selection, asked.previous)
    charged = charged_costs(reader, asked.selection, asked.previous)
    with tenant.store.control.read() as connection:
        ids = {each.resource_id for each in (*charged, *topics)}
        ids |= {each.environment_id for each in (*charged, *topics) if each.environment_id is not None}
        known = read_lineages(connection, ids)
    focus = find(build(charged, topics, known, asked.leaves), asked.focus)
    if focus is None:
        raise UnknownFocus(f"The graph of this period has no node {asked.focus[:80]!r}.")
    return GraphView(focus, known)


def selection_of(view: GraphView, selection: Selection) -> Selection:
    """Return the selection of the rows of the node, for the aggregate of its dataset."""
    if view.focus.kind == "topic":
        selection, _ = of_topics(selection)
    own = tuple(ColumnFilter(name, frozenset(values)) for name, values in filters_of(view.focus, view.known).items())
    return replace(selection, columns=(*selection.columns, *own))


def graph_of(tenant: TenantView, view: GraphView, period: CalendarPeriod, depth: int, top: int) -> GraphAnswer:
    """Return the requested node and its descendants, down to a depth."""
    listed = shown(view.focus, depth, top)
    names = identity_names(tenant, (each.node for each in listed))
    nodes = [
        GraphNode.at(
            each,
            view,
            names,
            amount=_amount(each.node.units[0]),
            own=_amount(each.node.own[0]),
            other=GraphOthers(count=each.hidden, amount=_amount(each.others[0])) if each.hidden else None,
        )
        for each in listed
    ]
    return GraphAnswer(nodes=nodes, **_about(tenant, view, period))


def graph_diff(
    tenant: TenantView, view: GraphView, period: CalendarPeriod, compared: CalendarPeriod | None, depth: int, top: int
) -> GraphDiffAnswer:
    """Return the same with the costs of both periods."""
    listed = shown(view.focus, depth, top)
    names = identity_names(tenant, (each.node for each in listed))
    nodes = [
        GraphDiffNode.at(
            each,
            view,
            names,
            own=Changed(**_both(each.node.own)),
            state=_state(each.node),
            other=ChangedOthers(count=each.hidden, **_both(each.others)) if each.hidden else None,
            **_both(each.node.units),
        )
        for each in listed
    ]
    other = {"compared_start_date": compared and compared.start, "compared_end_date": compared and compared.end}
    return GraphDiffAnswer(nodes=nodes, **other, **_about(tenant, view, period))


def graph_timeline(
    tenant: TenantView,
    reader: TenantReader,
    view: GraphView,
    period: CalendarPeriod,
    selection: Selection,
    unit: str,
    zone: ZoneInfo,
) -> GraphTimeline:
    """Return the cost of the node in each unit of time that has rows of it, ascending: as aggregates name the units.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    dataset = TOPIC_ATTRIBUTIONS if view.focus.kind == "topic" else CHARGEBACKS
    sums = reader.sums(Sums(dataset, selection_of(view, selection), (ByTime(unit, zone),)))
    items = []
    if sums.days is not None:
        label = bucket(unit, zone, sums.days).label
        rows = sums.rows(f"SELECT {label} AS time, {sums.amount()} FROM sums ORDER BY time")
        items = [TimelinePoint(time=time, amount=amount) for time, amount in rows]
    return GraphTimeline(amount=_amount(view.focus.units[0]), items=items, **_about(tenant, view, period))


def identity_names(tenant: TenantView, nodes: Iterable[Node]) -> Mapping[str, Named]:
    """Return the names of the identities among some nodes."""
    with tenant.store.control.read() as connection:
        return names_of(connection, IDENTITIES, {each.value or "" for each in nodes if each.kind == "identity"})


def _about(tenant: TenantView, view: GraphView, period: CalendarPeriod) -> dict[str, Any]:
    path = view.focus.path()
    names = identity_names(tenant, path)
    return {
        "start_date": period.start,
        "end_date": period.end,
        "currency": tenant.currency,
        "path": [GraphPart.of(each, view, names) for each in path],
    }


def _state(node: Node) -> Literal["same", "changed", "new", "gone"]:
    is_now, was_before = node.is_in
    if is_now != was_before:
        return "new" if is_now else "gone"
    return "changed" if node.units[0] != node.units[1] else "same"


def _both(units: Units) -> dict[str, Decimal]:
    """Return the fields of :class:`Changed`."""
    now, before = units
    return {"before": _amount(before), "after": _amount(now), "delta": _amount(now - before)}


def _amount(units: int) -> Decimal:
    """Return the cost of a node, which is an integer of 10⁻²⁴."""
    return from_units(units, SHARED_PLACES)
