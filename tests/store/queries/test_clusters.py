"""Clusters are those of the present inventory."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import instants
from chargeback.model.inventory import Resource
from chargeback.store.control.inventory import ensure_known
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.clusters import CLUSTER_ID, ClusterCache
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.tag_index import TagIndex
from tests.support.clock import NOW
from tests.support.facts import Share, line, tenant_store, write_lines, write_shares

DAY = date(2026, 1, 5)
WINDOW = instants(DAY, DAY)
CLUSTERS = {"lkc-1": "lkc-1", "lcc-1": "lkc-1", "lkc-2": "lkc-2", "topic": "lkc-2"}
AMOUNTS = {"lkc-1": "1", "lcc-1": "2", "lkc-2": "4", "lsrc-1": "8"}


def test_a_new_inventory_is_read_anew(tmp_path: Path) -> None:
    """An unchanged inventory is read only once."""
    cache = ClusterCache()
    with tenant_store(tmp_path) as store:
        assert cache.load(store) == {}
        resources = [
            Resource("env-1", "environment"),
            Resource("lkc-1", "kafka_cluster", parent_id="env-1", deleted_at=NOW),
            Resource("lcc-1", "connector", parent_id="lkc-1"),
            Resource("lsrc-1", "schema_registry", parent_id="env-1"),
        ]
        with store.control.write() as connection:
            ensure_known(connection, NOW, billed=resources)
        found = cache.load(store)
        assert found == {"lkc-1": "lkc-1", "lcc-1": "lkc-1"}
        assert cache.load(store) is found


def _reader(cursor: Any, facts: FactTables) -> TenantReader:
    return TenantReader(cursor, facts, TagIndex(), clusters=lambda: CLUSTERS)


def test_rows_are_grouped_by_cluster(engine: QueryEngine, facts: FactTables) -> None:
    """Rows outside any cluster have the cluster None, and the total is complete."""
    write_shares(facts, [Share(DAY, "sa-1", amount, resource=name) for name, amount in AMOUNTS.items()])
    write_lines(facts, [line(DAY, amount, resource=name) for name, amount in AMOUNTS.items()])
    with engine.cursor(CancellationToken()) as cursor:
        reader = _reader(cursor, facts)
        for dataset in (CHARGEBACKS, BILLING_LINES):
            found = reader.aggregate(dataset, Selection(WINDOW), Grouping((CLUSTER_ID,), "day", ZoneInfo("UTC")))
            amounts = {each["dimensions"][CLUSTER_ID]: each["total_amount"] for each in found.buckets}
            assert amounts == {None: "8.00", "lkc-1": "3.00", "lkc-2": "4.00"}
            assert found.totals["total_amount"] == "15.00"


@pytest.mark.parametrize(
    ("values", "resources"),
    [
        (["lkc-1"], {"lkc-1", "lcc-1"}),
        (["lkc-1", "lkc-2"], {"lkc-1", "lcc-1", "lkc-2"}),
        ([""], {"lsrc-1"}),
        (["", "lkc-2"], {"lsrc-1", "lkc-2"}),
        (["lkc-3"], set()),
    ],
)
def test_rows_are_filtered_by_cluster(
    engine: QueryEngine, facts: FactTables, values: list[str], resources: set[str]
) -> None:
    """Rows are filtered by one cluster, several, or none, or by excluding these."""
    write_shares(facts, [Share(DAY, "sa-1", amount, resource=name) for name, amount in AMOUNTS.items()])
    with engine.cursor(CancellationToken()) as cursor:
        for excludes, expected in ((False, resources), (True, set(AMOUNTS) - resources)):
            selection = Selection(WINDOW, (ColumnFilter(CLUSTER_ID, frozenset(values), excludes),))
            rows, total = _reader(cursor, facts).list_rows(CHARGEBACKS, selection, Page(0, 10))
            assert {row["resource_id"] for row in rows} == expected
            assert total == len(expected)
