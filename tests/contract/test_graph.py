"""The graph over HTTP: a tree of costs whose parts sum to the whole; each equals the rows that its filters select."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, total


def graph(client: Client, everything: Everything, **parameters: object) -> Record:
    """Return the graph of all costs."""
    days = {"start_date": everything.days[0], "end_date": everything.days[-1]} | parameters
    found: Record = client.answer(f"{everything.base}/graph", **days)
    return found


@pytest.mark.parametrize("leaves", ["identities", "topics", "none"])
def test_costs_add_up(client: Client, everything: Everything, leaves: str) -> None:
    """The cost of a node is the sum of its children, of others and of its own cost; the root has the total."""
    nodes = graph(client, everything, leaves=leaves, depth=5, top=3)["nodes"]
    assert nodes[0]["id"] == ""
    assert Decimal(nodes[0]["amount"]) == total(everything.chargebacks)
    parents = {each["parent"] for each in nodes}
    for node in nodes:
        below = [each for each in nodes if each["parent"] == node["id"]]
        others = Decimal(node["other"]["amount"]) if node["other"] else 0
        assert node["children"] == len(below) + (node["other"]["count"] if node["other"] else 0)
        if node["id"] in parents:
            assert total(below) + others + Decimal(node["own"]) == Decimal(node["amount"])


def test_filters_lead_to_the_rows(client: Client, everything: Everything) -> None:
    """The aggregate with a node's filters equals its cost."""
    for leaves in ("identities", "topics"):
        found = graph(client, everything, leaves=leaves, depth=3, top=2)
        dates = {"start_date": found["start_date"], "end_date": found["end_date"]}
        for node in found["nodes"]:
            path = f"{everything.base}/{node['rows']}/aggregate"
            assert client.answer(path, **dates, **node["filters"])["total_amount"] == node["amount"]


def test_a_focus_and_its_path(client: Client, everything: Everything) -> None:
    """The response begins at the focus, given by its id or the end of its id, and has the path to it."""
    cluster = next(each for each in graph(client, everything)["nodes"] if each["type"] == "kafka_cluster")
    for focus in (cluster["id"], f"r:{cluster['value']}"):
        found = graph(client, everything, focus=focus, depth=0)
        assert [each["id"] for each in found["nodes"]] == [cluster["id"]]
        assert [each["kind"] for each in found["path"]] == ["organisation", "environment", "resource"]
        assert found["nodes"][0]["amount"] == cluster["amount"]
    missing = client.get(f"{everything.base}/graph", params={"focus": "r:none"})
    assert missing.status_code == 404


def test_two_periods(client: Client, everything: Everything) -> None:
    """Each side is the graph of its period; nodes of only one period are new or gone."""
    first, last = everything.days[0], everything.days[-1]
    path = f"{everything.base}/graph/diff"
    asked = {"start_date": last, "end_date": last, "compare": f"{first}..{first}", "depth": 5, "top": 100}
    found = client.answer(path, **asked)
    sides = []
    for day in (first, last):
        of_day = graph(client, everything, start_date=day, end_date=day, depth=5, top=100)
        sides.append({each["id"]: each for each in of_day["nodes"]})
    for node in found["nodes"]:
        amounts = [side[node["id"]]["amount"] if node["id"] in side else "0.00" for side in sides]
        assert [node["before"], node["after"]] == amounts
        assert Decimal(node["delta"]) == Decimal(node["after"]) - Decimal(node["before"])
        is_in = tuple(node["id"] in side for side in sides)
        assert (node["state"] == "new", node["state"] == "gone") == (is_in == (False, True), is_in == (True, False))
    assert {each["id"] for each in found["nodes"]} == sides[0].keys() | sides[1].keys()


def test_over_time(client: Client, everything: Everything) -> None:
    """The days of a node sum to its cost."""
    days = {"start_date": everything.days[0], "end_date": everything.days[-1]}
    for focus in ("", graph(client, everything)["nodes"][-1]["id"]):
        found = client.answer(f"{everything.base}/graph/timeline", **days, focus=focus)
        assert total(found["items"]) == Decimal(found["amount"])


def test_what_is_refused(client: Client, everything: Everything) -> None:
    """Filters that topics do not support, and values beyond the limits, are refused."""
    path = f"{everything.base}/graph"
    assert complaints(client.get(path, params={"leaves": "topics", "identity_id": "sa-1"})) == ["leaves"]
    wrong: Record = {"depth": 6, "top": 0, "leaves": "people", "focus": "x" * 4097}
    assert complaints(client.get(path, params=wrong)) == sorted(wrong)
