"""Topic rows over HTTP."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from chargeback.api.routes.topic_attributions import TopicAggregateAnswer, TopicRow
from chargeback.reports.answers import PageOf
from chargeback.store.queries import aggregate
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, known, parameters_of
from tests.support.facts import tenant_store
from tests.support.serving import client_of, services_for
from tests.support.topics import TopicShare, write_topic_shares

URL = f"{ACME}/topic-attributions"
WHOLE = {"start_date": DAYS[0].isoformat(), "end_date": DAYS[-1].isoformat()}


@pytest.fixture(scope="module")
def topics_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """Five days with four rows each, on two clusters."""
    with tenant_store(tmp_path_factory.mktemp("topics")) as store:
        shares = [
            share
            for day in DAYS
            for share in (
                TopicShare(day, "orders", "6.25"),
                TopicShare(day, "payments", "3.75"),
                TopicShare(day, "=orders", "-1.5", cluster="lkc-2", method="even_split", environment=None),
                TopicShare(
                    day, "__UNATTRIBUTED__", "0.000000000001", product="KAFKA_BASE", method="ATTRIBUTION_FAILED"
                ),
            )
        ]
        write_topic_shares(store.facts, shares)
        yield store


def client_with(store: TenantStore, status: str, error: str | None = None) -> AbstractContextManager[httpx.Client]:
    """Return a client of the API for a tenant with that status of topic attribution."""
    services = services_for(store)
    tenants = {
        name: replace(view, topic_attribution_status=status, topic_attribution_error=error)
        for name, view in services.tenants.items()
    }
    return client_of(replace(services, tenants=tenants))


@pytest.fixture(scope="module")
def client(topics_store: TenantStore) -> Iterator[httpx.Client]:
    """A client of the API over a tenant with topics."""
    with client_with(topics_store, "enabled") as client:
        yield client


def test_the_list(client: httpx.Client) -> None:
    """Rows have the documented fields, by time, cluster, topic and type."""
    body = client.get(URL, params={"page_size": 4}).json()
    PageOf[TopicRow].model_validate(body)
    assert (body["total"], body["pages"]) == (20, 5)
    assert [row["topic_name"] for row in body["items"]] == ["__UNATTRIBUTED__", "orders", "payments", "=orders"]
    assert body["items"][1] == {
        "dimension_id": body["items"][1]["dimension_id"],
        "ecosystem": "test_cloud",
        "tenant_id": "acme-id",
        "timestamp": f"{DAYS[0]}T00:00:00Z",
        "env_id": "env-1",
        "cluster_resource_id": "lkc-1",
        "topic_name": "orders",
        "product_category": "KAFKA",
        "product_type": "KAFKA_NETWORK_WRITE",
        "attribution_method": "bytes_ratio",
        "amount": "6.25",
        "metadata": {
            "line_id": "line-1",
            "explain": f"topic-attributions/explain?date={DAYS[0]}&line_id=line-1&topic_name=orders",
        },
    }
    assert body["items"][3]["env_id"] is None


@pytest.mark.parametrize(
    ("parameters", "rows"),
    [
        ({"cluster_resource_id": "lkc-2"}, 5),
        ({"topic_name": "orders"}, 5),
        ({"product_type": "KAFKA_BASE"}, 5),
        ({"attribution_method": "even_split"}, 5),
        ({"attribution_method": "ATTRIBUTION_FAILED"}, 5),
        ({"topic_name": "orders", "cluster_resource_id": "lkc-2"}, 0),
        ({"topic_name": "nobody"}, 0),
        ({"start_date": LAST.isoformat()}, 4),
        ({"page": "99"}, 20),
    ],
)
def test_filters(client: httpx.Client, parameters: dict[str, str], rows: int) -> None:
    """Each filter restricts the list; unknown values return an empty list."""
    assert client.get(URL, params=parameters).json()["total"] == rows


def test_pages_follow_each_other(client: httpx.Client) -> None:
    """The pages together have every row once."""
    pages = [client.get(URL, params={"page": page, "page_size": 3}).json()["items"] for page in range(1, 8)]
    seen = [(row["timestamp"], row["cluster_resource_id"], row["topic_name"]) for page in pages for row in page]
    assert len(seen) == len(set(seen)) == 20
    assert seen == sorted(seen)


def test_sums_by_topic_and_day(client: httpx.Client) -> None:
    """The default is by topic and day; the totals cover everything."""
    body = client.get(f"{URL}/aggregate").json()
    TopicAggregateAnswer.model_validate(body)
    assert (body["total_amount"], body["total_rows"], len(body["buckets"])) == ("42.500000000005", 20, 20)
    assert body["buckets"][-1] == {
        "dimensions": {"topic_name": "payments"},
        "time_bucket": LAST.isoformat(),
        "total_amount": "3.75",
        "row_count": 1,
    }


@pytest.mark.parametrize("unit", ["hour", "day", "week", "month"])
def test_every_column_and_unit(client: httpx.Client, unit: str) -> None:
    """The total is the same for every grouping."""
    for column in (*TOPIC_ATTRIBUTIONS.groups, "tag:team"):
        body = client.get(f"{URL}/aggregate", params={"group_by": column, "time_bucket": unit}).json()
        assert body["total_amount"] == "42.500000000005"
        assert set(body["buckets"][0]["dimensions"]) == {column}


def test_sums_are_narrowed_by_the_same_filters(client: httpx.Client) -> None:
    """The aggregate has the filters of the list."""
    body = client.get(f"{URL}/aggregate", params={"topic_name": "orders", "group_by": "cluster_resource_id"}).json()
    assert (body["total_amount"], body["total_rows"]) == ("31.25", 5)


def test_truncated_sums_are_announced(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """When buckets are left out, a header says so and the totals still cover all rows."""
    monkeypatch.setattr(aggregate, "MAX_BUCKETS", 9)
    response = client.get(f"{URL}/aggregate", params={"page": 2})  # ignored here, but it makes another request
    assert response.headers["x-buckets-truncated"] == "true"
    assert len(response.json()["buckets"]) == 8
    assert response.json()["total_rows"] == 20


def test_tags_of_the_topic_group_and_filter(tmp_path: Path) -> None:
    """The current tags of the topic count, not those of its cluster."""
    with tenant_store(tmp_path) as store:
        write_topic_shares(store.facts, [TopicShare(LAST, "orders", "6"), TopicShare(LAST, "payments", "3")])
        known(store, resources=["lkc-1:topic:orders", "lkc-1"])
        with client_with(store, "enabled") as client:
            for entity, team in (("lkc-1:topic:orders", "shop"), ("lkc-1", "platform")):
                tag = {"tag_key": "team", "tag_value": team}
                assert client.post(f"{ACME}/entities/resource/{entity}/tags", json=tag).status_code == 201
            grouped = client.get(f"{URL}/aggregate", params={"group_by": "tag:team"}).json()["buckets"]
            assert {each["dimensions"]["tag:team"]: each["total_amount"] for each in grouped} == {
                "shop": "6.00",
                "UNTAGGED": "3.00",
            }
            for wanted, total in (
                ("shop", "6.00"),
                ("UNTAGGED", "3.00"),
                ("shop,UNTAGGED", "9.00"),
                ("platform", "0.00"),
            ):
                narrowed = client.get(f"{URL}/aggregate", params={"tag:team": wanted}).json()
                assert narrowed["total_amount"] == total
            everything = client.get(f"{URL}/aggregate", params={"tag:unknown": "UNTAGGED"}).json()
            assert everything["total_amount"] == "9.00"


def test_dates(client: httpx.Client) -> None:
    """The days that have rows."""
    assert client.get(f"{URL}/dates").json() == {"dates": [day.isoformat() for day in DAYS]}


def test_the_export(client: httpx.Client) -> None:
    """The export has all rows of the range in the order of the list, under the documented name; formulas are
    escaped."""
    response = client.post(f"{URL}/export", json=WHOLE)
    assert response.headers["content-disposition"] == "attachment; filename=topic_attributions.csv"
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    names = "ecosystem,tenant_id,timestamp,env_id,cluster_resource_id,topic_name,product_category,product_type"
    assert list(rows[0]) == [*names.split(","), "attribution_method", "amount"]
    assert [row["topic_name"] for row in rows[:4]] == ["__UNATTRIBUTED__", "orders", "payments", "'=orders"]
    assert (rows[3]["env_id"], rows[3]["amount"]) == ("", "-1.50")
    assert sum(Decimal(row["amount"]) for row in rows) == Decimal("42.500000000005")
    assert client.post(f"{URL}/export").text == response.text
    one_day = client.post(f"{URL}/export", json={"start_date": str(LAST), "end_date": str(LAST)}).text
    assert len(one_day.splitlines()) == 5


@pytest.mark.parametrize(
    ("path", "parameters", "wrong"),
    [
        ("", {"attribution_method": "magic"}, ["attribution_method"]),
        ("", {"group_by": "topic_name"}, ["group_by"]),
        ("/aggregate", {"group_by": "identity_id"}, ["group_by"]),
        ("/aggregate", {"not.attribution_method": "magic"}, ["not.attribution_method"]),
        ("/aggregate", {"identity_id": "sa-1"}, ["identity_id"]),
        ("/aggregate", {"time_bucket": "year", "timezone": "Mars/Base"}, ["time_bucket", "timezone"]),
        ("/dates", {"nothing": "1"}, ["nothing"]),
    ],
)
def test_what_is_wrong_is_refused(
    client: httpx.Client, path: str, parameters: dict[str, str], wrong: list[str]
) -> None:
    """A 400 names every unknown parameter and invalid value."""
    assert parameters_of(client.get(URL + path, params=parameters)) == wrong


def test_the_body_of_the_export_is_checked(client: httpx.Client) -> None:
    """Fields other than dates and a time zone are refused."""
    assert parameters_of(client.post(f"{URL}/export", json={"columns": ["amount"]})) == ["columns"]


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        ("disabled", None, "plugin_settings.topic_attribution.enabled: true enables it"),
        ("config_error", "retention_days: should be at least 1", "retention_days: should be at least 1"),
    ],
)
def test_without_topics(topics_store: TenantStore, status: str, error: str | None, words: str) -> None:
    """Every endpoint responds with a 400 that says what to configure."""
    with client_with(topics_store, status, error) as client:
        answers = [client.get(URL + path) for path in ("", "/aggregate", "/dates")] + [client.post(f"{URL}/export")]
        for answer in answers:
            assert answer.status_code == 400
            assert answer.headers["content-type"] == "application/problem+json"
            assert words in answer.json()["detail"]


def test_no_tenant(client: httpx.Client) -> None:
    """An unknown tenant is a 404."""
    assert client.get("/api/v1/tenants/nobody/topic-attributions").status_code == 404
