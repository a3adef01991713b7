"""The graph read from the facts: every cost equals the aggregate with the filters of its node."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import instants
from chargeback.model.inventory import ENVIRONMENT, KAFKA_CLUSTER, Identity, Resource
from chargeback.model.money import SHARED_PLACES, from_units, total
from chargeback.reports.graph.tree import Leaves, Node, filters_of
from chargeback.reports.graph.view import (
    GraphPart,
    GraphRequest,
    GraphView,
    TopicsNotFiltered,
    UnknownFocus,
    graph_timeline,
    identity_names,
    read_graph,
    selection_of,
)
from chargeback.reports.periods import CalendarPeriod
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory import ensure_known
from chargeback.store.facts.files import read_file
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.queries import aggregate
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.clusters import ClusterCache
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.tag_index import TagIndex
from tests.support.clock import NOW
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.topics import TopicShare, write_topic_shares

FIRST = date(2026, 1, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(4)]
NOW_DAYS, BEFORE_DAYS = instants(DAYS[2], DAYS[3]), instants(DAYS[0], DAYS[1])
SELECTED = Selection(NOW_DAYS)
BY_DAY = Grouping(("product_type",), "day", ZoneInfo("UTC"))

RESOURCES = [
    Resource("env-1", ENVIRONMENT, "prod"),
    Resource("env-2", ENVIRONMENT),
    *(Resource(f"lkc-{n}", KAFKA_CLUSTER, f"cluster {n}", parent_id=f"env-{n % 2 + 1}") for n in range(6)),
    *(Resource(f"lcc-{n}", "connector", parent_id=f"lkc-{n % 6}") for n in range(12)),
    *(Resource(f"lfcp-{n}", "pool", parent_id="env-1") for n in range(3)),
    Resource("job-1", "job", parent_id="lfcp-1"),
]


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantView]:
    """Yield two periods of random costs and topics; some rows have another environment than the inventory."""
    rng = random.Random(7)
    ids = [each.resource_id for each in RESOURCES if each.resource_type != ENVIRONMENT] + ["org", "lkc-unknown"]
    shares = [
        Share(
            day,
            f"sa-{rng.randrange(25)}",
            f"{from_units(rng.randrange(-(10**14), 10**16)):f}",
            resource=rng.choice(ids),
            environment=rng.choice(["env-1", "env-2", None]),
            product=rng.choice(["KAFKA_BASE", "KAFKA_STORAGE"]),
            line=f"line-{number}",
        )
        for day in DAYS
        for number in range(150)
    ]
    topics = [
        TopicShare(
            day,
            f"topic-{rng.randrange(20)}",
            f"{from_units(rng.randrange(10**12)):f}",
            cluster=f"lkc-{rng.randrange(6)}",
            environment=rng.choice(["env-1", "env-2"]),
            line=f"line-{number}",
        )
        for day in DAYS
        for number in range(100)
    ]
    with tenant_store(tmp_path_factory.mktemp("graph")) as store:
        write_shares(store.facts, shares)
        write_topic_shares(store.facts, topics)
        with store.control.write() as connection:
            ensure_known(connection, NOW, billed=RESOURCES, charged=[Identity("sa-1", "user", "alice")])
        yield TenantView("acme", "a", "e", 200, store)


@pytest.fixture(scope="module")
def reader(tenant: TenantView) -> Iterator[TenantReader]:
    """Yield a reader of the tenant."""
    engine, clusters = QueryEngine(threads=2), ClusterCache()
    with engine.cursor(CancellationToken()) as cursor:
        yield TenantReader(cursor, tenant.store.facts, TagIndex(), clusters=lambda: clusters.load(tenant.store))
    engine.close()


def graph(
    reader: TenantReader, tenant: TenantView, leaves: Leaves, focus: str = "", selection: Selection = SELECTED
) -> GraphView:
    """Return the graph of the second half, compared with the first."""
    return read_graph(reader, tenant, GraphRequest(selection, BEFORE_DAYS, focus, leaves))


@pytest.mark.extensive
@pytest.mark.parametrize(
    ("leaves", "selection"),
    [
        ("identities", SELECTED),
        ("topics", SELECTED),
        ("none", replace(SELECTED, columns=(ColumnFilter("product_type", frozenset(["KAFKA_BASE"])),))),
        ("identities", replace(SELECTED, columns=(ColumnFilter("identity_id", frozenset(["sa-1"]), excludes=True),))),
    ],
)
def test_costs_are_those_of_the_aggregate(
    reader: TenantReader, tenant: TenantView, leaves: Leaves, selection: Selection
) -> None:
    """Costs of nodes of every kind equal the aggregate exactly, in both periods."""
    view = graph(reader, tenant, leaves, selection=selection)
    by_kind: dict[str, list[Node]] = {}
    for node in view.focus.below():
        by_kind.setdefault(node.kind, []).append(node)
    for node in (each for of_kind in by_kind.values() for each in of_kind[:: len(of_kind) // 5 + 1]):
        dataset = TOPIC_ATTRIBUTIONS if node.kind == "topic" else CHARGEBACKS
        of_node = selection_of(GraphView(node, view.known), selection)
        for period, window in enumerate((NOW_DAYS, BEFORE_DAYS)):
            found = reader.aggregate(dataset, replace(of_node, window=window), BY_DAY)
            assert Decimal(found.totals["total_amount"]) == from_units(node.units[period], SHARED_PLACES), node.id
            assert bool(found.totals["total_rows"]) == node.is_in[period]


def test_costs_are_those_of_the_rows(reader: TenantReader, tenant: TenantView) -> None:
    """The cost of each of hundreds of nodes equals the sum of the rows that match its filters, read by other code."""
    rows = read_rows(reader)
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "environment_id": lambda row: row["environment_id"] or "",
        "cluster_id": lambda row: cluster_of(row["resource_id"]),
        "resource_id": lambda row: row["resource_id"],
        "identity_id": lambda row: row["identity_id"],
    }
    view = graph(reader, tenant, "identities")
    checked = 0
    for node in view.focus.below():
        filters = filters_of(node, view.known)
        mine = [row for row in rows if all(columns[name](row) in values for name, values in filters.items())]
        assert total(row["amount"] for row in mine) == from_units(node.units[0], SHARED_PLACES)
        checked += 1
    assert checked >= 200


def cluster_of(resource_id: str) -> str:
    """Return the cluster of a resource, or an empty string."""
    parents = {each.resource_id: each.parent_id or "" for each in RESOURCES}
    within = [each for each in (resource_id, parents.get(resource_id, "")) if each in parents]
    return next((each for each in within if each.startswith("lkc-")), "")


def read_rows(reader: TenantReader) -> list[dict[str, Any]]:
    """Return the rows of the second half, read from the files."""
    tables = [read_file(file) for file in reader.snapshot(CHARGEBACKS_TABLE).files if file.day in DAYS[2:]]
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("focus", ["", "e:env-1", "r:lkc-1", "e:", "t:topic-3"])
def test_a_timeline_sums_to_the_node(
    reader: TenantReader, tenant: TenantView, focus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The days of a timeline sum to the cost of the node, including topics; no limit of aggregates leaves any out."""
    monkeypatch.setattr(aggregate, "MAX_BUCKETS", 1)
    view = graph(reader, tenant, "topics", focus)
    period = CalendarPeriod(DAYS[2], DAYS[3])
    found = graph_timeline(tenant, reader, view, period, SELECTED, "day", ZoneInfo("UTC"))
    assert {point.time for point in found.items} <= {str(day) for day in DAYS[2:]}
    assert total(point.amount for point in found.items) == from_units(view.focus.units[0], SHARED_PLACES)


def test_a_focus_has_what_is_in_it(reader: TenantReader, tenant: TenantView) -> None:
    """A node is found by its id or the end of it; an unknown one raises an error."""
    whole = graph(reader, tenant, "none").focus.children["e:env-1"]
    assert {node.id: node.units for node in graph(reader, tenant, "none", "e:env-1").focus.below()} == {
        node.id: node.units for node in whole.below()
    }
    assert (graph(reader, tenant, "none", "r:lkc-1").focus.value) == "lkc-1"
    with pytest.raises(UnknownFocus, match="no node 'r:nothing'"):
        graph(reader, tenant, "none", "r:nothing")


def test_topics_are_not_filtered_by_what_they_do_not_have(reader: TenantReader, tenant: TenantView) -> None:
    """A filter that topics do not have raises an error: their costs would not be part of their clusters'."""
    mine = replace(SELECTED, columns=(ColumnFilter("identity_id", frozenset(["sa-1"])),))
    with pytest.raises(TopicsNotFiltered, match="identity_id"):
        graph(reader, tenant, "topics", selection=mine)


def test_names(reader: TenantReader, tenant: TenantView) -> None:
    """Resources and identities have names and types in addition to their ids."""
    view = graph(reader, tenant, "identities")
    nodes = list(view.focus.below())
    names = identity_names(tenant, nodes)
    shown = {each.value: GraphPart.of(each, view, names) for each in nodes}
    assert (shown["lkc-1"].name, shown["lkc-1"].type) == ("cluster 1", KAFKA_CLUSTER)
    assert (shown["sa-1"].name, shown["sa-1"].type) == ("alice", "user")
    assert (shown["lkc-unknown"].name, shown["env-1"].name) == (None, "prod")
