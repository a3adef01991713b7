"""The graph of an organisation: environments, their resources, and the identities that pay for these, or their topics.

It is a tree. The cost of a node is exactly the sum of the rows that its filters select. It is also the sum of the costs
of its children and its own cost, which belongs to no child.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import quote

from chargeback.model.inventory import ENVIRONMENT, KAFKA_CLUSTER
from chargeback.reports.flow import PlacedCost
from chargeback.store.control.inventory_lists import Lineage

Kind = Literal["organisation", "environment", "resource", "identity", "topic"]
Leaves = Literal["identities", "topics", "none"]
#: The prefixes of the parts of an id, by kind.
_LETTERS: Final[Mapping[Kind, str]] = {"environment": "e", "resource": "r", "identity": "i", "topic": "t"}

Units = tuple[int, int]
_NOTHING: Final[Units] = (0, 0)


@dataclass(slots=True)
class Node:
    """A part of the organisation.

    Attributes:
        id: the parts of the path to it, such as ``e:env-1/r:lkc-1``; empty for the organisation.
        kind: its kind.
        value: its id in rows; None for resources without an environment, and for the organisation.
        parent: the node that contains it.
        units: its cost in the period and in the previous one, in 10⁻²⁴, including its descendants.
        is_in: whether the period and the previous one have rows of it.
        children: by their ids.
    """

    id: str
    kind: Kind
    value: str | None
    parent: Node | None = None
    units: Units = _NOTHING
    is_in: tuple[bool, bool] = (False, False)
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def own(self) -> Units:
        """Return the cost that belongs to the node and to none of its children."""
        below = _sum(child.units for child in self.children.values())
        return self.units[0] - below[0], self.units[1] - below[1]

    def path(self) -> list[Node]:
        """Return the nodes from the organisation to this one."""
        above = [] if self.parent is None else self.parent.path()
        return [*above, self]

    def below(self) -> Iterator[Node]:
        """Yield the node and its descendants."""
        yield self
        for child in self.children.values():
            yield from child.below()

    def child(self, kind: Kind, value: str | None) -> Node:
        """Return a child, which is created if there is none."""
        part = f"{_LETTERS[kind]}:{quote(value or '', safe='')}"
        id_ = f"{self.id}/{part}" if self.id else part
        return self.children.setdefault(id_, Node(id_, kind, value, self))

    def add(self, cost: PlacedCost) -> None:
        """Add a cost to the node alone."""
        self.units = _sum([self.units, cost.units])
        self.is_in = (self.is_in[0] or cost.is_in[0], self.is_in[1] or cost.is_in[1])


def build(
    charged: Iterable[PlacedCost], topics: Iterable[PlacedCost], known: Mapping[str, Lineage], leaves: Leaves
) -> Node:
    """Return the organisation. ``known`` are the resources of the inventory that have costs, and those that contain
    them."""
    root = Node("", "organisation", None)
    chains = _Chains(known)
    for cost in charged:
        node = root
        node.add(cost)
        for kind, value in chains.of(cost):
            node = node.child(kind, value)
            node.add(cost)
        if leaves == "identities":
            node.child("identity", cost.leaf).add(cost)
    for cost in topics:
        node = root
        for kind, value in chains.of(cost):
            node = node.child(kind, value)
        node.child("topic", cost.leaf).add(cost)
    return root


class _Chains:
    """The paths to resources: an environment, and the resources that contain them."""

    def __init__(self, known: Mapping[str, Lineage]) -> None:
        self._known = known
        self._within: dict[str, list[tuple[Kind, str | None]]] = {}

    def of(self, cost: PlacedCost) -> list[tuple[Kind, str | None]]:
        """Return the parts of the path to the resource of a cost. The environment is that of the rows."""
        return [("environment", cost.environment_id), *self._resources(cost.resource_id)]

    def _resources(self, resource_id: str) -> list[tuple[Kind, str | None]]:
        if resource_id not in self._within:
            above: list[tuple[Kind, str | None]] = []
            here: str | None = resource_id
            seen: set[str] = set()
            while here is not None and here not in seen:
                found = self._known.get(here)
                if here != resource_id and (found is None or found.type == ENVIRONMENT):
                    break
                above.append(("resource", here))
                seen.add(here)
                here = None if found is None else found.parent_id
            self._within[resource_id] = above[::-1]
        return self._within[resource_id]


def find(root: Node, focus: str) -> Node | None:
    """Return the node of an id. The last part of an id is enough: then the most expensive node whose id ends with it is
    returned."""
    if not focus:
        return root
    ending = f"/{focus}"
    found = [node for node in root.below() if node.id == focus or node.id.endswith(ending)]
    exact = [node for node in found if node.id == focus]
    return next(iter(exact or sorted(found, key=_rank)), None)


def filters_of(node: Node, known: Mapping[str, Lineage]) -> dict[str, list[str]]:
    """Return the filters that select the rows of a node: of chargebacks, or of topic rows for a topic. The empty text
    means rows without a value."""
    if node.parent is None:
        return {}
    if node.kind == "environment":
        return {"environment_id": [node.value or ""]}
    (environment,) = (each.value or "" for each in node.path() if each.kind == "environment")
    value = node.value or ""
    if node.kind == "topic":
        cluster = node.parent.value or ""
        return {"env_id": [environment], "cluster_resource_id": [cluster], "topic_name": [value]}
    within = {"environment_id": [environment]}
    if node.kind == "identity":
        return {**within, "resource_id": [node.parent.value or ""], "identity_id": [value]}
    if value in known and known[value].type == KAFKA_CLUSTER:
        return {**within, "cluster_id": [value]}
    return {**within, "resource_id": sorted({each.value or "" for each in node.below() if each.kind == "resource"})}


@dataclass(frozen=True)
class Shown:
    """A node in a response.

    Attributes:
        parent: the id of the node above it; None for the focus.
        hidden: the number of its children that are not named.
        others: the sum of the costs of these.
    """

    node: Node
    parent: str | None
    hidden: int
    others: Units


def shown(focus: Node, depth: int, top: int) -> list[Shown]:
    """Return a node and its descendants down to a depth, the most expensive first; each names at most ``top`` children.

    Nodes at that depth name none of their children.
    """
    found: list[Shown] = []
    level: list[tuple[Node, str | None]] = [(focus, None)]
    for left in range(depth, -1, -1):
        following: list[tuple[Node, str | None]] = []
        for node, parent in level:
            ranked = sorted(node.children.values(), key=_rank)
            named: Sequence[Node] = ranked[:top] if left else ()
            others = ranked[len(named) :]
            found.append(Shown(node, parent, len(others), _sum(each.units for each in others)))
            following += [(each, node.id) for each in named]
        level = following
    return found


def _rank(node: Node) -> tuple[int, str]:
    return -max(abs(each) for each in node.units), node.id


def _sum(amounts: Iterable[Units]) -> Units:
    now, before = 0, 0
    for each in amounts:
        now, before = now + each[0], before + each[1]
    return now, before
