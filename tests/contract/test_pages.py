"""The requests of the web pages: a tenant, its runs, flow, search, topics and views."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest

from tests.contract.deployment import DAYS
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, shown, those, total


def test_a_tenant(client: Client, everything: Everything) -> None:
    """The response has the days of the tenant and what it supports."""
    answer = client.answer(everything.base)
    assert (answer["first_date"], answer["last_date"]) == (everything.days[0], everything.days[-1])
    assert (answer["currency"], answer["lookback_days"], answer["run"]) == ("USD", DAYS, None)
    assert answer["features"] == {"can_tag": True, "can_run": True, "topics": True}


def test_how_much_of_the_cost_has_a_tag(scratch: Client) -> None:
    """Each tag key has its share of the cost; the search finds its values."""
    base = "/api/v1/tenants/scratch"
    rows = scratch.all_items(f"{base}/chargebacks")
    owner = max(rows, key=lambda row: Decimal(row["amount"]))["identity_id"]
    tag = {"tag_key": "team", "tag_value": "payments"}
    assert scratch.post(scratch.tag_path("scratch", "identity", owner), json=tag).status_code == 201
    share = total(those(rows, identity_id=owner)) / total(rows)
    (team,) = scratch.answer(base)["tag_keys"]
    assert team == {"key": "team", "coverage": str(share.quantize(Decimal("0.0001")))}
    (found,) = those(scratch.answer(f"{base}/search", q="PAYM")["items"], kind="tag")
    assert (found["id"], found["type"]) == ("payments", "team")
    assert found["amount"] == shown(total(those(rows, identity_id=owner)))


def test_tenants_that_have_nothing(client: Client, api_only: Client) -> None:
    """A tenant without days and tags gets a response as well; without a pipeline, no run can be started."""
    answer = client.answer("/api/v1/tenants/plain")
    assert (answer["first_date"], answer["tag_keys"]) == (None, [])
    assert answer["features"]["topics"] is False
    assert api_only.get("/api/v1/tenants/acme").json()["features"]["can_run"] is False
    assert client.get("/api/v1/tenants/nobody").status_code == 404


def test_runs(client: Client, everything: Everything) -> None:
    """The newest runs come first, up to the requested number."""
    answer = client.answer(f"{everything.base}/runs")
    assert len(answer["items"]) >= 2
    ids = [int(run["run_id"]) for run in answer["items"]]
    assert ids == sorted(ids, reverse=True)
    assert client.answer(f"{everything.base}/runs", limit=1)["items"] == answer["items"][:1]
    assert complaints(client.get(f"{everything.base}/runs", params={"limit": 101})) == ["limit"]


def test_the_flow_loses_nothing(client: Client, everything: Everything) -> None:
    """Each column sums to the total, and the inflow of a node equals its outflow."""
    by = ["environment_id", "resource_id", "tag:team"]
    answer = client.answer(f"{everything.base}/flow", period="7d", by=by, top="3,4,2", compare="previous")
    rows = [row for row in everything.chargebacks if row["timestamp"][:10] in everything.days[-7:]]
    before = [row for row in everything.chargebacks if row["timestamp"][:10] in everything.days[-14:-7]]
    for column in range(3):
        nodes = those(answer["nodes"], column=column)
        assert len([node for node in nodes if node["other"] is None]) == min((3, 4, 2)[column], len(nodes))
        assert shown(total(nodes)) == shown(total(rows))
        assert shown(total(nodes, "previous")) == shown(total(before))
    for place, node in enumerate(answer["nodes"]):
        for end in ("source", "target"):
            links = those(answer["links"], **{end: place})
            if links:
                assert (shown(total(links)), shown(total(links, "previous"))) == (node["amount"], node["previous"])


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"by": "resource_id"}, ["by"]),
        ({"by": ["resource_id", "resource_id"]}, ["by"]),
        ({"by": ["a", "resource_id"]}, ["by"]),
        ({"top": "0"}, ["top"]),
        ({"top": "1,2,3,4,5"}, ["top"]),
        ({"top": "٣"}, ["top"]),
        ({"top": "x", "line_id": "x"}, ["line_id", "top"]),
    ],
)
def test_what_the_flow_refuses(
    client: Client, everything: Everything, params: dict[str, Any], wrong: list[str]
) -> None:
    """A 400 names every invalid parameter."""
    assert complaints(client.get(f"{everything.base}/flow", params=params)) == wrong


def test_the_search(client: Client, everything: Everything) -> None:
    """Matches contain the text and are ordered by cost; a topic has its cluster as parent, and a tag value has its key
    as type."""
    path = f"{everything.base}/search"
    resource = max(
        everything.resources, key=lambda each: (each["resource_type"] == "kafka_cluster", each["resource_id"])
    )
    (found, *_) = client.answer(path, q=resource["resource_id"].upper())["items"]
    assert (found["kind"], found["id"], found["name"]) == (
        "resource",
        resource["resource_id"],
        resource["display_name"],
    )
    rows = those(everything.chargebacks, resource_id=resource["resource_id"])
    assert found["amount"] == shown(total(rows))
    wanted = those(
        everything.topics,
        topic_name=everything.topics[-1]["topic_name"],
        cluster_resource_id=everything.topics[-1]["cluster_resource_id"],
    )
    topics = those(client.answer(path, q=wanted[0]["topic_name"], limit=100)["items"], kind="topic")
    (topic,) = those(topics, id=wanted[0]["topic_name"], parent_id=wanted[0]["cluster_resource_id"])
    assert topic["amount"] == shown(total(wanted))
    assert len(client.answer(path, q="a", limit=3)["items"]) == 3
    assert client.answer(path)["items"] == client.answer(path, q="no such thing")["items"] == []
    assert complaints(client.get(path, params={"q": "a\x00b", "limit": 0})) == ["limit", "q"]


def test_the_summary_of_topics(client: Client, everything: Everything) -> None:
    """The largest topics and the sum of the others equal the aggregate."""
    answer = client.answer(f"{everything.base}/topics", period="30d", top=3, identity_id="sa-1")
    assert answer["total"] == shown(total(everything.topics))
    assert shown(total(answer["items"]) + Decimal(answer["other"]["amount"])) == answer["total"]
    largest = answer["items"][0]
    rows = those(
        everything.topics,
        topic_name=largest["topic_name"],
        cluster_resource_id=largest["cluster_resource_id"],
    )
    assert largest["amount"] == shown(total(rows))
    assert answer["ignored_filters"] == ["identity_id"]
    cluster = largest["cluster_resource_id"]
    of_cluster = client.answer(f"{everything.base}/topics", resource_id=cluster, top=1000)
    assert of_cluster["total"] == shown(total(those(everything.topics, cluster_resource_id=cluster)))
    assert not any(item["zombie"] for item in of_cluster["items"] if Decimal(item["bytes_in"] or 0))


def test_topics_need_attribution(client: Client) -> None:
    """If attribution is disabled or misconfigured, the response says so."""
    for tenant in ("plain", "wrong"):
        assert client.get(f"/api/v1/tenants/{tenant}/topics").status_code == 400


def test_views(scratch: Client) -> None:
    """Views can be saved, changed and removed; their names are unique."""
    path = "/api/v1/tenants/scratch/views"
    for each in scratch.answer(path)["items"]:  # other tests may have saved some
        assert scratch.delete(f"{path}/{each['id']}").status_code == 204
    assert scratch.answer(path) == {"items": []}
    body = {"name": "Payments", "page": "costs", "query": "tag:team=payments"}
    made = scratch.post(path, json=body | {"created_by": "alice"})
    assert made.status_code == 201
    view = made.json()
    assert scratch.post(path, json=body).status_code == 409
    second = scratch.post(path, json=body | {"name": "All", "query": ""}).json()
    assert [each["name"] for each in scratch.answer(path)["items"]] == ["All", "Payments"]
    changed = scratch.put(f"{path}/{view['id']}", json=body | {"query": "period=7d"})
    assert changed.json() == view | {"query": "period=7d"}
    assert scratch.put(f"{path}/{view['id']}", json=body | {"name": "All"}).status_code == 409
    for each in (view, second):
        assert scratch.delete(f"{path}/{each['id']}").status_code == 204
        assert scratch.delete(f"{path}/{each['id']}").status_code == 404
    assert scratch.put(f"{path}/{view['id']}", json=body).status_code == 404


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["name", "page"]),
        ({"name": "", "page": "Costs", "query": "a\nb"}, ["name", "page", "query"]),
        ({"name": "x" * 256, "page": "../", "query": "x" * 8001}, ["name", "page", "query"]),
        ({"name": "a", "page": "costs", "id": "1"}, ["id"]),
    ],
)
def test_what_views_refuse(scratch: Client, body: Record, wrong: list[str]) -> None:
    """A 400 names every invalid field; cross-origin requests are refused."""
    path = "/api/v1/tenants/scratch/views"
    assert complaints(scratch.post(path, json=body)) == wrong
    fine = {"name": "a", "page": "costs"}
    assert scratch.post(path, json=fine, headers={"Origin": "https://elsewhere.example"}).status_code == 403


@pytest.mark.parametrize(
    ("name", "amount"), [("chargebacks", "amount"), ("billing", "total_cost"), ("topic-attributions", "amount")]
)
def test_lists_as_files(client: Client, everything: Everything, name: str, amount: str) -> None:
    """The path and the Accept header give the same file, with all rows that match the filters."""
    path, params = f"{everything.base}/{name}", {"product_category": "KAFKA", "period": "3d"}
    by_path = client.get(f"{path}.csv", params=params)
    by_accept = client.get(path, params=params, headers={"Accept": "text/csv"})
    assert by_path.content == by_accept.content
    assert by_path.headers["content-type"].startswith("text/csv")
    assert by_path.headers["content-disposition"].startswith("attachment; filename=")
    rows = list(csv.DictReader(io.StringIO(by_path.text)))
    assert shown(total(rows, amount)) == shown(total(client.all_items(path, **params), amount))
    assert rows
    assert complaints(client.get(f"{path}.csv", params={"nonsense": "1"})) == ["nonsense"]


def test_rows_by_amount(client: Client, everything: Everything) -> None:
    """Rows can be ordered in both directions, with pages and names."""
    path = f"{everything.base}/chargebacks"
    dearest = client.all_items(path, sort_by="amount", sort_order="desc", page_size=500)
    amounts = [Decimal(row["amount"]) for row in dearest]
    assert amounts == sorted(amounts, reverse=True)
    assert len(dearest) == len(everything.chargebacks)
    cheapest = client.answer(path, sort_by="amount", page_size=10)["items"]
    assert [Decimal(row["amount"]) for row in cheapest] == sorted(amounts)[:10]
    last = client.answer(path, sort_by="timestamp", sort_order="desc", page_size=1)["items"]
    assert last[0]["timestamp"][:10] == everything.days[-1]
    over = client.all_items(path, min_amount="10.5")
    assert over == [row for row in everything.chargebacks if Decimal(row["amount"]) >= Decimal("10.5")]
    names = {each["identity_id"]: each["display_name"] for each in everything.identities}
    resources = {each["resource_id"]: each["display_name"] for each in everything.resources}
    for row in client.answer(path, names="true", page_size=50)["items"]:
        assert row["identity_name"] == names[row["identity_id"]]
        assert row["resource_name"] == resources[row["resource_id"]]
    wrong = {"sort_by": "tags", "sort_order": "up", "min_amount": "1e3", "names": "perhaps"}
    assert complaints(client.get(path, params=wrong)) == sorted(wrong)


def test_bulk_previews_and_removals(scratch: Client) -> None:
    """A dry run reports what would change and changes nothing; many tags can be removed at once, and are counted."""
    base = "/api/v1/tenants/scratch/tags"
    place = {"entity_type": "identity", "entity_id": "UNALLOCATED", "tag_key": "team"}
    tag = place | {"tag_value": "a"}
    other = tag | {"tag_key": "env"}
    entity = {"entity_type": "identity", "entity_id": "UNALLOCATED"}
    preview = scratch.post(f"{base}/bulk", json={"items": [tag, other], "dry_run": True}).json()
    created = {"created_count": 2, "updated_count": 0, "skipped_count": 0}
    assert preview == created | {"entities": [entity | created]}
    assert scratch.answer(base)["items"] == []
    assert scratch.post(f"{base}/bulk", json={"items": [tag, other]}).json() == created
    again = {"items": [tag | {"tag_value": "b"}], "override_existing": True, "dry_run": True}
    updated = {"created_count": 0, "updated_count": 1, "skipped_count": 0}
    assert scratch.post(f"{base}/bulk", json=again).json() == updated | {"entities": [entity | updated]}
    by_filter = {"identity_id": "UNALLOCATED", "tag_key": "owner", "display_name": "x"}
    foreseen = scratch.post(f"{base}/bulk-by-filter", json=by_filter | {"dry_run": True}).json()
    assert sum(each["created_count"] for each in foreseen.pop("entities")) == foreseen["created_count"]
    assert len(scratch.answer(base)["items"]) == 2
    removal = {"items": [place, place | {"tag_key": "env"}, place | {"tag_key": "none"}]}
    expected = {"deleted_count": 2, "missing_count": 1}
    dry = scratch.post(f"{base}/bulk-delete", json=removal | {"dry_run": True})
    assert dry.json() == expected | {"entities": [entity | expected]}
    assert len(scratch.answer(base)["items"]) == 2
    assert scratch.post(f"{base}/bulk-delete", json=removal).json() == expected
    assert scratch.answer(base)["items"] == []
    assert scratch.post(f"{base}/bulk-by-filter", json=by_filter).json() == foreseen
    assert complaints(scratch.post(f"{base}/bulk-delete", json={"items": []})) == ["items"]
