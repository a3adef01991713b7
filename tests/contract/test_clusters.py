"""Rows can be filtered and grouped by the cluster of their resource in the inventory."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from decimal import Decimal

import pytest

from tests.contract.records import Client, Everything, Record, shown, total

PERIOD = {"period": "8d"}


@pytest.fixture(scope="module")
def clusters(everything: Everything) -> dict[str, str | None]:
    """A map from resource to cluster, found by the parents in the list."""
    known = {each["resource_id"]: each for each in everything.resources}

    def _cluster(resource_id: str | None) -> str | None:
        if resource_id is None or resource_id not in known:
            return None
        each = known[resource_id]
        return resource_id if each["resource_type"] == "kafka_cluster" else _cluster(each["parent_id"])

    found = {resource_id: _cluster(resource_id) for resource_id in known}
    assert {each["resource_id"] for each in known.values() if found[each["resource_id"]] != each["resource_id"]}
    return found


def _rows(everything: Everything) -> list[Record]:
    return [row for row in everything.chargebacks if row["timestamp"][:10] in everything.days[-8:]]


def test_groups(client: Client, everything: Everything, clusters: dict[str, str | None]) -> None:
    """The aggregate, the breakdown of costs and the flow have the sums of the rows by cluster, with names."""
    sums: dict[str | None, Decimal] = defaultdict(Decimal)
    for row in _rows(everything):
        sums[clusters[row["resource_id"]]] += Decimal(row["amount"])
    assert len(sums) > 2
    expected = {cluster: shown(amount) for cluster, amount in sums.items()}
    params = PERIOD | {"group_by": "cluster_id", "time_bucket": "month"}
    amounts: dict[str | None, Decimal] = defaultdict(Decimal)
    for bucket in client.answer(f"{everything.base}/chargebacks/aggregate", **params)["buckets"]:
        amounts[bucket["dimensions"]["cluster_id"]] += Decimal(bucket["total_amount"])
    assert {cluster: shown(amount) for cluster, amount in amounts.items()} == expected
    answer = client.answer(f"{everything.base}/costs", **PERIOD, by=["cluster_id", "product_type"], top=50)
    items = answer["breakdowns"][0]["items"]
    assert {item["value"]: item["amount"] for item in items} == expected
    names = {each["resource_id"]: each["display_name"] for each in everything.resources}
    assert all(item["name"] == names.get(item["value"]) for item in items)
    flow = client.answer(f"{everything.base}/flow", **PERIOD, by=["cluster_id", "identity_id"], top="50")
    assert {node["value"]: node["amount"] for node in flow["nodes"] if node["column"] == 0} == expected


@pytest.mark.extensive
@pytest.mark.parametrize("excludes", [False, True])
def test_filters(client: Client, everything: Everything, clusters: dict[str, str | None], excludes: bool) -> None:
    """One cluster, several, or no cluster can be selected or excluded in rows, costs, files and bills."""
    some = sorted({cluster for cluster in clusters.values() if cluster is not None})[:2]
    for values in (some[:1], some, [""], ["", some[0]]):
        wanted = {value or None for value in values}
        params = PERIOD | {("not." if excludes else "") + "cluster_id": values}
        rows = [row for row in _rows(everything) if (clusters[row["resource_id"]] in wanted) is not excludes]
        assert client.all_items(f"{everything.base}/chargebacks", **params) == rows
        assert client.answer(f"{everything.base}/costs", **params)["total"]["amount"] == shown(total(rows))
        file = client.get(f"{everything.base}/chargebacks.csv", params=params).text
        assert shown(total(csv.DictReader(io.StringIO(file)))) == shown(total(rows))
        lines = client.all_items(f"{everything.base}/billing", **params)
        assert shown(total(lines, "total_cost")) == shown(total(rows))


def test_the_export_and_topics(client: Client, everything: Everything, clusters: dict[str, str | None]) -> None:
    """Exports accept the filter, and the summary of topics as well."""
    cluster = next(each for each in clusters.values() if each is not None)
    rows = [row for row in everything.chargebacks if clusters[row["resource_id"]] == cluster]
    body = {"columns": ["amount"], "filters": {"cluster_id": cluster}}
    file = client.post(f"{everything.base}/export", json=body).text
    assert shown(total(csv.DictReader(io.StringIO(file)))) == shown(total(rows))
    topics = client.answer(f"{everything.base}/topics", **PERIOD, cluster_id=cluster, top=1000)
    assert topics["ignored_filters"] == []
    assert {item["cluster_resource_id"] for item in topics["items"]} == {cluster}
