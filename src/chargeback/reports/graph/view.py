"""The graph of an organisation as one request asks for it: read from the facts and the inventory, with names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from chargeback.model.days import InstantRange
from chargeback.model.money import SHARED_PLACES, from_units, render, total
from chargeback.reports.flow import charged_costs, topic_costs_by_cluster
from chargeback.reports.graph.tree import Leaves, Node, Shown, Units, build, filters_of, find
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.topic_costs import of_topics
from chargeback.store.control.inventory_lists import IDENTITIES
from chargeback.store.control.lineage import Lineage, read_lineages
from chargeback.store.control.names import Named, names_of
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import ColumnFilter, Selection


class UnknownFocus(LookupError):
    """The period has no such node."""


class TopicsNotFiltered(ValueError):
    """Topics cannot be filtered as the request says; the message has the filters."""


@dataclass(frozen=True)
class GraphRequest:
    """What is asked: the selected costs, the other period, the node in the middle, and what resources consist of."""

    selection: Selection
    previous: InstantRange | None
    focus: str
    leaves: Leaves


@dataclass(frozen=True)
class GraphView:
    """The node that was asked for, with everything in it, and the resources as the inventory has them."""

    focus: Node
    known: Mapping[str, Lineage]


def read_graph(reader: TenantReader, tenant: TenantView, asked: GraphRequest) -> GraphView:
    """Return the node that was asked for.

    Raises:
        UnknownFocus: there is no such node.
        TopicsNotFiltered: topics were asked for, with filters that they do not have.
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


def timeline(
    reader: TenantReader, view: GraphView, selection: Selection, unit: str, zone: ZoneInfo
) -> dict[str, Decimal]:
    """Return the cost of the node in each unit of time that has rows of it, ascending: as aggregates name the units.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    dataset, environment = CHARGEBACKS, "environment_id"
    if view.focus.kind == "topic":
        dataset, environment = TOPIC_ATTRIBUTIONS, "env_id"
    grouping = Grouping((environment,), unit, zone)
    sums: dict[str, Decimal] = {}
    for each in reader.aggregate(dataset, selection_of(view, selection), grouping).buckets:
        time = each["time_bucket"]
        sums[time] = total([sums.get(time, Decimal(0)), Decimal(each["total_amount"])])
    return dict(sorted(sums.items()))


def identity_names(tenant: TenantView, nodes: Iterable[Node]) -> Mapping[str, Named]:
    """Return what is known of the identities among some nodes."""
    with tenant.store.control.read() as connection:
        return names_of(connection, IDENTITIES, {each.value or "" for each in nodes if each.kind == "identity"})


def part_json(node: Node, view: GraphView, identities: Mapping[str, Named]) -> dict[str, Any]:
    """Return a node by its names."""
    name, type_ = None, None
    if node.kind == "identity" and (person := identities.get(node.value or "")):
        name, type_ = person.name, person.type
    elif node.kind in {"environment", "resource"} and (resource := view.known.get(node.value or "")):
        name, type_ = resource.name, resource.type
    return {"id": node.id, "kind": node.kind, "value": node.value, "name": name, "type": type_}


def placed_json(each: Shown, view: GraphView, identities: Mapping[str, Named]) -> dict[str, Any]:
    """Return a node in its place, without its costs."""
    return {
        **part_json(each.node, view, identities),
        "parent": each.parent,
        "children": len(each.node.children),
        "rows": "topic-attributions" if each.node.kind == "topic" else "chargebacks",
        "filters": filters_of(each.node, view.known),
    }


def cost_json(each: Shown) -> dict[str, Any]:
    """Return the costs of a node in one period."""
    return {
        "amount": cost_text(each.node.units[0]),
        "own": cost_text(each.node.own[0]),
        "other": {"count": each.hidden, "amount": cost_text(each.others[0])} if each.hidden else None,
    }


def change_json(each: Shown) -> dict[str, Any]:
    """Return the costs of a node in both periods."""
    is_now, was_before = each.node.is_in
    state = "changed" if each.node.units[0] != each.node.units[1] else "same"
    if is_now != was_before:
        state = "new" if is_now else "gone"
    return {
        **_changed(each.node.units),
        "own": _changed(each.node.own),
        "state": state,
        "other": {"count": each.hidden, **_changed(each.others)} if each.hidden else None,
    }


def cost_text(units: int) -> str:
    """Return the cost of a node, which is an integer of 10⁻²⁴."""
    return render(from_units(units, SHARED_PLACES))


def _changed(units: Units) -> dict[str, str]:
    after, before = (cost_text(each) for each in units)
    return {"before": before, "after": after, "delta": cost_text(units[0] - units[1])}
