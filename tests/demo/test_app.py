"""Credentials, rate limits and faults, over real connections."""

from __future__ import annotations

import time

import httpx
import pytest

from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer, ServerOptions

USERS = "/iam/v2/users"


@pytest.mark.parametrize("auth", [None, ("nobody", "nothing"), ("", "")])
def test_wrong_credentials_are_refused(server: DemoServer, auth: tuple[str, str] | None) -> None:
    """Without the Cloud key and its secret, every endpoint returns 401."""
    assert httpx.get(server.url + USERS, auth=auth).status_code == 401
    assert httpx.get(server.url + USERS, headers={"authorization": "Basic ???"}).status_code == 401


def test_a_cloud_key_does_not_open_the_gateway(server: DemoServer, organisation: Organisation) -> None:
    """The Flink gateway requires the key of its own region."""
    inventory = organisation.inventory
    place = f"/sql/v1/organizations/{inventory.organization_id}/environments/{inventory.environments[0].id}/statements"
    url = server.flink_url("us-east-1") + place
    answers = [
        httpx.get(url, auth=auth).status_code
        for auth in ((server.key, server.secret), server.flink_credentials("eu-west-1"))
    ]
    assert answers == [401, 401]
    assert httpx.get(url, auth=server.flink_credentials("us-east-1")).status_code == 200


def test_unknown_paths_methods_and_parameters_are_refused(client: httpx.Client) -> None:
    """Unknown paths, methods and parameters return 404, 405 and 400."""
    statuses = [
        client.get("/iam/v9/users").status_code,
        client.post(USERS).status_code,
        client.get(USERS, params={"colour": "blue"}).status_code,
    ]
    assert statuses == [404, 405, 400]


def test_limits_are_told_in_relative_seconds(organisation: Organisation) -> None:
    """After the burst, a key gets 429 with Retry-After; the reset is a small number of seconds, not a date."""
    options = ServerOptions(rate_burst=3, rate_per_second=0.01)
    with DemoServer(organisation, options=options) as server:
        auth, place = (server.key, server.secret), "/connect/v1/environments/e/clusters/c/connectors"
        answers = [httpx.get(server.url + USERS, auth=auth) for _ in range(4)]
        connect = httpx.get(server.url + place, auth=auth)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert 0 < int(answers[-1].headers["x-ratelimit-reset"]) <= 300
    assert 0 < int(answers[-1].headers["retry-after"]) <= 100
    assert "retry-after" not in answers[0].headers
    assert (connect.status_code, connect.json()["error"]["code"]) == (429, 429)
    assert "retry-after" in connect.headers
    assert "x-ratelimit-reset" not in connect.headers


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
def test_laid_statuses_come_and_go(server: DemoServer, client: httpx.Client, status: int) -> None:
    """A configured status occurs the given number of times, with Retry-After if configured; then the endpoint works
    again."""
    server.faults.add("/iam", Fault(status=status, times=2, retry_after=7))
    answers = [client.get(USERS) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [status, status, 200]
    assert answers[0].headers["retry-after"] == "7"
    assert answers[0].json()["errors"][0]["status"] == str(status)
    assert server.requests[USERS] == 3


def test_bodies_can_be_spoilt(server: DemoServer, client: httpx.Client) -> None:
    """A configured body, a proxy's page and a truncated document are returned as configured."""
    server.faults.add(USERS, Fault(status=418, body="tea"))
    server.faults.add(USERS, Fault(kind="html"))
    server.faults.add(USERS, Fault(kind="truncated"))
    tea, page, half = (client.get(USERS) for _ in range(3))
    assert (tea.status_code, tea.text) == (418, "tea")
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html")
    assert half.status_code == 200
    with pytest.raises(ValueError, match=r"."):
        half.json()


def test_connections_can_be_reset(server: DemoServer, client: httpx.Client) -> None:
    """A reset connection is a transport error; the next request succeeds."""
    server.faults.add(USERS, Fault(kind="reset"))
    with pytest.raises(httpx.TransportError):
        client.get(USERS)
    assert client.get(USERS).status_code == 200


def test_answers_can_be_late_and_slow(server: DemoServer, client: httpx.Client) -> None:
    """A delay holds a response back; a slow drip sends the whole response in pieces."""
    expected = client.get(USERS).json()["data"]
    server.faults.add(USERS, Fault(delay=0.2))
    begun = time.monotonic()
    assert client.get(USERS).json()["data"] == expected
    assert time.monotonic() - begun >= 0.2
    server.faults.add(USERS, Fault(kind="slow_drip", delay=0.01))
    assert client.get(USERS).json()["data"] == expected


def test_a_slow_drip_ends_with_the_server(organisation: Organisation) -> None:
    """A server that stops does not wait for its slow responses."""
    with DemoServer(organisation) as server:
        server.faults.add(USERS, Fault(kind="slow_drip", delay=60))
        auth, url = (server.key, server.secret), server.url + USERS
        with httpx.Client() as client, client.stream("GET", url, auth=auth) as answer:
            assert answer.status_code == 200
            begun = time.monotonic()
            server.__exit__(None, None, None)
    assert time.monotonic() - begun < 20


def test_paging_faults_reach_the_lists(server: DemoServer, client: httpx.Client) -> None:
    """With endless paging, a page links to itself."""
    server.faults.add(USERS, Fault(kind="endless_paging", times=None))
    first = client.get(USERS).json()
    second = client.get(first["metadata"]["next"]).json()
    assert second["data"] == first["data"]
    assert second["metadata"]["next"]


def test_the_query_endpoint_can_be_reset(server: DemoServer) -> None:
    """The query endpoint resets connections until the fault is removed; the provider's endpoints keep working."""
    url = f"{server.prometheus_url}/api/v1/query?query=1"
    server.faults.add("/prometheus", Fault(kind="reset", times=None))
    with pytest.raises(httpx.TransportError):
        httpx.get(url)
    assert httpx.get(server.url + USERS, auth=(server.key, server.secret)).status_code == 200
    server.faults.clear()
    assert httpx.get(url).status_code == 200


def test_laid_faults_on_queries_have_prometheus_shape(server: DemoServer) -> None:
    """A configured 503 on the query endpoint has the error shape of Prometheus."""
    server.faults.add("/prometheus", Fault(status=503))
    answer = httpx.get(f"{server.prometheus_url}/api/v1/query?query=1")
    assert (answer.status_code, answer.json()["status"]) == (503, "error")
    assert httpx.get(f"{server.prometheus_url}/nothing").json()["errorType"] == "not_found"
