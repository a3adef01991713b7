"""SPEC §4 «Pipeline», §3 and §7: real runs, started through the API."""

from __future__ import annotations

import time

import httpx
import pytest

from tests.contract.problems import complaints, detail_of, kind_of
from tests.contract.records import Client
from tests.support.clock import TODAY

BASE = "/api/v1/tenants/plain/pipeline"
DEADLINE = 120


def wait_until_idle(client: Client) -> dict[str, object]:
    """Return the status once no run is in progress."""
    until = time.monotonic() + DEADLINE
    while (status := client.answer(f"{BASE}/status"))["is_running"]:
        assert time.monotonic() < until, "the run did not end"
        time.sleep(0.1)
    result: dict[str, object] = status
    return result


def started(client: Client, body: object = None) -> Client:
    """Start a run, which must be accepted."""
    response = client.post(f"{BASE}/run", json=body) if body else client.post(f"{BASE}/run")
    assert response.status_code == 202, response.text
    assert response.json()["tenant_name"] == "plain"
    assert response.headers["location"] == f"{BASE}/status"
    return client


@pytest.mark.extensive
def test_runs(client: Client) -> None:
    """The status is empty before the first run; a request during a run is a 409. A recalculation changes no amount."""
    rows = "/api/v1/tenants/plain/chargebacks"
    before = client.answer(f"{BASE}/status")
    never = dict.fromkeys(("progress", "permanent_failure", "last_run", "last_result"))
    assert before == {"tenant_name": "plain", "is_running": False, **never}
    during = started(client).answer(f"{BASE}/status")
    assert (during["is_running"], during["last_result"]) == (True, None)
    again = client.post(f"{BASE}/run")
    assert kind_of(again, 409) == "already-running"
    assert detail_of(again, 409) == "Pipeline is already running for tenant plain"
    first = wait_until_idle(client)
    charged = client.all_items(rows)
    days = sorted({row["timestamp"][:10] for row in charged})
    assert first["last_result"] == {
        "dates_gathered": len(days),
        "dates_calculated": len(days),
        "chargeback_rows_written": len(charged),
        "errors": [],
        "completed_at": first["last_run"],
    }
    body = {"start_date": days[-1], "end_date": days[-1], "recalculate": True}
    started(client, body)
    second = wait_until_idle(client)
    result = second["last_result"]
    assert isinstance(result, dict)
    assert (result["errors"], result["dates_calculated"], result["completed_at"]) == ([], 1, second["last_run"])
    assert second["last_run"] != first["last_run"]
    assert client.all_items(rows) == charged


def test_status_of_the_others(client: Client) -> None:
    """A run of one tenant does not show in the status of another."""
    status = client.answer("/api/v1/tenants/scratch/pipeline/status")
    assert (status["tenant_name"], status["is_running"]) == ("scratch", False)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"recalculate": "yes"}, ["recalculate"]),
        ({"start_date": "x", "end_date": 1}, ["end_date", "start_date"]),
        ({"start_date": "2026-02-02", "end_date": "2026-02-01"}, ["start_date"]),
        ({"force": True}, ["force"]),
        ([], ["body"]),
    ],
)
def test_what_a_trigger_refuses(client: Client, body: object, named: list[str]) -> None:
    """A 400 names every invalid field; no run is started."""
    assert complaints(client.post(f"{BASE}/run", json=body)) == named
    assert complaints(client.post(f"{BASE}/run", params={"recalculate": "true"})) == ["recalculate"]


def test_a_trigger_outside_mode_both(api_only: httpx.Client) -> None:
    """The response is a 400 with the specified message, with and without a body."""
    for body in (None, {"recalculate": True, "end_date": str(TODAY)}):
        response = api_only.post(f"{BASE}/run", json=body)
        assert kind_of(response, 400) == "no-runner"
        assert detail_of(response, 400).startswith("No WorkflowRunner available - run in both mode")
    assert api_only.get(f"{BASE}/status").status_code == 200
