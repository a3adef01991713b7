"""The graph of an organisation: a tree whose costs add up, for any hierarchy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.model.inventory import ENVIRONMENT, KAFKA_CLUSTER
from chargeback.reports.flow import PlacedCost
from chargeback.reports.graph.tree import Node, build, filters_of, find, shown
from chargeback.store.control.inventory_lists import Lineage
from tests.support.laws import examples

KNOWN = {
    "env-1": Lineage(ENVIRONMENT, None, "prod"),
    "env-2": Lineage(ENVIRONMENT, None, None),
    "lkc-1": Lineage(KAFKA_CLUSTER, "env-1", "orders"),
    "lkc-2": Lineage(KAFKA_CLUSTER, "env-2", None),
    "lcc-1": Lineage("connector", "lkc-1", None),
    "lcc-2": Lineage("connector", "lkc-1", None),
    "lfcp-1": Lineage("pool", "env-1", None),
    "job-1": Lineage("job", "lfcp-1", None),
    "ring-1": Lineage("ring", "ring-2", None),
    "ring-2": Lineage("ring", "ring-1", None),
}


def cost(
    environment: str | None, resource: str, leaf: str, now: int, before: int = 0, *, is_gone: bool = False
) -> PlacedCost:
    """Return a cost in units, of both periods."""
    return PlacedCost(environment, resource, leaf, (now, before), (not is_gone, before != 0))


CHARGED = [
    cost("env-1", "lkc-1", "sa-1", 50, 40),
    cost("env-1", "lkc-1", "sa-2", 30),
    cost("env-1", "lcc-1", "sa-1", 7),
    cost("env-1", "job-1", "sa/3", 5),
    cost(None, "org", "sa-1", 2),
]


def test_what_is_in_what() -> None:
    """Resources are below their parents, in the environment of their rows; payers are below their resource."""
    root = build(CHARGED, (), KNOWN, "identities")
    assert {node.id: node.units[0] for node in root.below()} == {
        "": 94,
        "e:env-1": 92,
        "e:env-1/r:lkc-1": 87,
        "e:env-1/r:lkc-1/i:sa-1": 50,
        "e:env-1/r:lkc-1/i:sa-2": 30,
        "e:env-1/r:lkc-1/r:lcc-1": 7,
        "e:env-1/r:lkc-1/r:lcc-1/i:sa-1": 7,
        "e:env-1/r:lfcp-1": 5,
        "e:env-1/r:lfcp-1/r:job-1": 5,
        "e:env-1/r:lfcp-1/r:job-1/i:sa%2F3": 5,
        "e:": 2,
        "e:/r:org": 2,
        "e:/r:org/i:sa-1": 2,
    }


def test_topics_take_a_part_of_their_cluster() -> None:
    """The cost of a cluster without its topics is its own; the costs above it are still those of the charges."""
    topics = [cost("env-1", "lkc-1", "orders", 60), cost("env-1", "lkc-1", "idle", 1)]
    root = build(CHARGED, topics, KNOWN, "topics")
    cluster = find(root, "e:env-1/r:lkc-1")
    assert cluster is not None
    assert (cluster.units[0], cluster.own[0], root.units[0]) == (87, 19, 94)
    assert sorted(cluster.children) == [f"e:env-1/r:lkc-1/{part}" for part in ("r:lcc-1", "t:idle", "t:orders")]


def test_a_node_is_found_by_its_id_or_its_end() -> None:
    """A node is found by its id or by the end of it; of several matches, the most expensive one is returned."""
    root = build(CHARGED, (), KNOWN, "identities")
    for focus, expected in (
        ("", ""),
        ("r:lkc-1", "e:env-1/r:lkc-1"),
        ("i:sa-1", "e:env-1/r:lkc-1/i:sa-1"),
        ("e:", "e:"),
    ):
        found = find(root, focus)
        assert found is not None
        assert found.id == expected
    assert find(root, "r:none") is None


def test_filters_of_each_kind() -> None:
    """A node's filters have the environment, and the cluster, resources, identity or topic."""
    root = build(CHARGED, [cost("env-1", "lkc-1", "orders", 1)], KNOWN, "identities")
    found = {node.id: filters_of(node, KNOWN) for node in root.below()}
    within = {"environment_id": ["env-1"]}
    assert found[""] == {}
    assert found["e:"] == {"environment_id": [""]}
    assert found["e:env-1/r:lkc-1"] == {**within, "cluster_id": ["lkc-1"]}
    assert found["e:env-1/r:lfcp-1"] == {**within, "resource_id": ["job-1", "lfcp-1"]}
    assert found["e:env-1/r:lkc-1/i:sa-2"] == {**within, "resource_id": ["lkc-1"], "identity_id": ["sa-2"]}
    assert found["e:env-1/r:lkc-1/t:orders"] == {
        "env_id": ["env-1"],
        "cluster_resource_id": ["lkc-1"],
        "topic_name": ["orders"],
    }


def test_what_is_named() -> None:
    """The most expensive children of either period come first; the others are counted and summed."""
    root = build([*CHARGED, cost("env-2", "lkc-2", "sa-9", 0, 900, is_gone=True)], (), KNOWN, "identities")
    found = shown(root, 1, 2)
    assert [(each.node.id, each.parent, each.hidden) for each in found] == [
        ("", None, 1),
        ("e:env-2", "", 1),
        ("e:env-1", "", 2),
    ]
    assert found[0].others == (2, 0)
    assert [each.node.id for each in shown(root, 0, 2)] == [""]


_costs = st.builds(
    cost,
    st.sampled_from(["env-1", "env-2", None]),
    st.sampled_from([*KNOWN, "unknown", "org"]),
    st.sampled_from(["sa-1", "sa-2", "UNALLOCATED", "a/b"]),
    st.integers(-(10**20), 10**20),
    st.integers(-(10**20), 10**20),
)


@settings(max_examples=examples(200))
@given(st.lists(_costs, max_size=30), st.lists(_costs, max_size=10), st.integers(0, 6), st.integers(1, 4))
def test_costs_add_up(charged: list[PlacedCost], topics: list[PlacedCost], depth: int, top: int) -> None:
    """Listed children, others and a node's own cost sum to its cost, in both periods and for any depth and limit."""
    for leaves in ("identities", "topics", "none"):
        root = build(charged, topics if leaves == "topics" else (), KNOWN, leaves)
        assert root.units == tuple(sum(each.units[period] for each in charged) for period in (0, 1))
        listed = shown(root, depth, top)
        for each in listed:
            named = [other.node for other in listed if other.parent == each.node.id]
            for period in (0, 1):
                below = sum(node.units[period] for node in named) + each.others[period]
                assert below + each.node.own[period] == each.node.units[period]
            assert len(named) + each.hidden == len(each.node.children)
        assert leaves != "identities" or not any(_own(node) for node in root.below())


def _own(node: Node) -> bool:
    return node.kind != "identity" and node.own != (0, 0)
