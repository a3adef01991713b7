"""The served organisation, in a thread and in a process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from chargeback.demo.config import ServerInfo
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.days import ONE_DAY
from tests.demo.conftest import TODAY


def test_a_server_frees_its_port_and_thread(organisation: Organisation) -> None:
    """After the ``with`` statement, the port is closed and no thread is left."""
    before = set(threading.enumerate())
    with DemoServer(organisation) as server:
        assert httpx.get(f"{server.prometheus_url}/-/ready").status_code == 200
        port = int(server.url.rpartition(":")[2])
        started = set(threading.enumerate()) - before
    assert {thread.name for thread in started if thread.name == "demo-server"}
    assert not [thread for thread in started if thread.name == "demo-server" and thread.is_alive()]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_taken_port_is_an_error(organisation: Organisation) -> None:
    """A port in use is an error at once."""
    with DemoServer(organisation) as server, pytest.raises(OSError, match="in use"):
        DemoServer(organisation, port=int(server.url.rpartition(":")[2]))


def test_it_listens_where_it_is_told(organisation: Organisation) -> None:
    """The server listens at the given address, and the addresses in its responses begin with it."""
    with DemoServer(organisation, host="127.0.0.2") as server:
        assert server.url.startswith("http://127.0.0.2:")
        assert httpx.get(f"{server.info.prometheus_url}/-/ready").status_code == 200


def test_regions_are_known_by_both_names(server: DemoServer) -> None:
    """A region may be given with or without its cloud; an unknown one is an error."""
    assert server.flink_url("us-east-1") == server.flink_url("aws.us-east-1")
    assert server.flink_credentials("eu-west-1") != server.flink_credentials("us-east-1")
    with pytest.raises(KeyError, match="mars"):
        server.flink_url("mars")


def test_requests_are_counted_and_logged(server: DemoServer, client: httpx.Client) -> None:
    """Tests can read how often and with which queries a path was requested."""
    client.get("/iam/v2/users", params={"page_size": 5})
    assert server.requests["/iam/v2/users"] == 1
    assert server.log[-1] == ("/iam/v2/users", "page_size=5")


@pytest.mark.usefixtures("process")
def test_a_process_of_its_own_serves_the_same(organisation: Organisation) -> None:
    """The module prints its address, serves the same rows, adds a line to the bill of a day that is sent to it, and
    ends on SIGTERM with status 0."""
    spec = organisation.spec
    command = [sys.executable, "-W", "error", "-m", "chargeback.demo.server", "--size", "small"]
    command += ["--days", str(spec.days), "--today", TODAY.isoformat(), "--seed", str(spec.seed)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        assert process.stdin is not None and process.stdout is not None
        info = ServerInfo.from_json(process.stdout.readline())
        window = {"start_date": spec.first_day.isoformat(), "end_date": spec.last_cost_day.isoformat()}
        answer = httpx.get(f"{info.url}/billing/v1/costs", params=window, auth=(info.key, info.secret), timeout=30)
        with DemoServer(organisation) as server:
            auth = (server.key, server.secret)
            here = httpx.get(f"{server.url}/billing/v1/costs", params=window, auth=auth, timeout=30)
        assert answer.json()["data"] == here.json()["data"]
        assert (info.days, info.today) == (spec.days, TODAY.isoformat())
        process.stdin.write(f"{spec.first_day}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{spec.first_day}\n"
        day = {"start_date": str(spec.first_day), "end_date": str(spec.first_day + ONE_DAY)}
        later = httpx.get(f"{info.url}/billing/v1/costs", params=day, auth=(info.key, info.secret), timeout=30)
        added = [each for each in later.json()["data"] if each not in answer.json()["data"]]
        assert [each["description"] for each in added] == ["Usage that was reported late"]
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
