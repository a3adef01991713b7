"""SPEC §4 «Health and readiness» and «Tenants», §9."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import timedelta

import httpx
import pytest

import chargeback
from chargeback.store.control.days import save_day
from chargeback.store.tenant import open_store
from tests.contract.deployment import CUTOFF_DAYS, DAYS, Deployment
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything
from tests.support.clock import TODAY
from tests.support.days import set_chargebacks, set_topics

#: The days that the pipeline calculates: from the lookback to the cutoff.
WINDOW = [(TODAY - timedelta(days=ago)).isoformat() for ago in range(DAYS, CUTOFF_DAYS, -1)]


def test_health(client: Client) -> None:
    """The response is ``{status: 'ok', version}``, outside ``/api/v1``."""
    answer = client.answer("/health")
    assert answer == {"status": "ok", "version": chargeback.__version__}
    assert client.get("/api/v1/health").status_code == 404
    assert complaints(client.get("/health", params={"x": 1})) == ["x"]


def test_readiness(client: Client) -> None:
    """The response has every field of the service and of each tenant."""
    answer = client.answer("/api/v1/readiness")
    assert (answer["status"], answer["mode"]) == ("ready", "both")
    assert answer["version"] == chargeback.__version__
    by_name = {tenant["tenant_name"]: tenant for tenant in answer["tenants"]}
    assert by_name.keys() == {"acme", "scratch", "plain", "wrong"}
    acme = by_name["acme"]
    assert (acme["tables_ready"], acme["has_data"], acme["permanent_failure"]) == (True, True, None)
    assert acme["last_run_status"] == "completed"
    statuses = {name: tenant["topic_attribution_status"] for name, tenant in by_name.items()}
    assert statuses == {"acme": "enabled", "scratch": "enabled", "plain": "disabled", "wrong": "config_error"}
    for name, tenant in by_name.items():
        assert (tenant["topic_attribution_error"] is not None) == (name == "wrong")


def test_readiness_in_mode_api(api_only: httpx.Client) -> None:
    """In mode api, only the mode differs."""
    answer = api_only.get("/api/v1/readiness").json()
    assert (answer["mode"], answer["status"]) == ("api", "ready")


@pytest.mark.extensive
def test_readiness_is_remembered_for_two_seconds(client: Client) -> None:
    """Within two seconds, the response is the same, byte for byte; afterwards it is computed again."""
    first = client.get("/api/v1/readiness").content
    assert client.get("/api/v1/readiness").content == first
    time.sleep(2.05)
    assert client.get("/api/v1/readiness").status_code == 200


def test_tenants(client: Client, everything: Everything) -> None:
    """The response is a list of summaries, ordered by name."""
    answer = client.answer("/api/v1/tenants")
    assert [tenant["tenant_name"] for tenant in answer] == ["acme", "plain", "scratch", "wrong"]
    acme = answer[0]
    assert acme["tenant_id"] == "acme"
    assert acme["ecosystem"] == "confluent_cloud"
    assert (acme["dates_pending"], acme["dates_calculated"]) == (0, len(WINDOW))
    assert acme["last_calculated_date"] == WINDOW[-1] == everything.days[-1]


def test_who_am_i(client: Client) -> None:
    """Without an access mode, a caller has all rights in every tenant."""
    answer = client.answer("/api/v1/me")
    assert (answer["user"], answer["kind"], answer["groups"]) == ("api", "anonymous", [])
    assert [tenant["tenant_name"] for tenant in answer["tenants"]] == ["acme", "plain", "scratch", "wrong"]
    assert {tenant["scope"] for tenant in answer["tenants"]} == {None}
    assert all(len(tenant["rights"]) == 6 for tenant in answer["tenants"])


def test_status(client: Client, everything: Everything) -> None:
    """Each date has five flags, by default for the lookback."""
    answer = client.answer(f"{everything.base}/status")
    assert answer["is_published"]
    assert [state["tracking_date"] for state in answer["states"]] == WINDOW
    for state in answer["states"]:
        assert all(value is True for name, value in state.items() if name != "tracking_date")
    assert (answer["tenant_name"], answer["tenant_id"], answer["topic_attribution_status"]) == (
        "acme",
        "acme",
        "enabled",
    )


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (WINDOW[2], WINDOW[5], WINDOW[2:6]),
        (WINDOW[3], WINDOW[3], WINDOW[3:4]),
        (WINDOW[7], None, WINDOW[7:]),
        (None, WINDOW[4], WINDOW[:5]),
        ("2020-01-01", "2020-02-01", []),
    ],
)
def test_status_of_a_range(
    client: Client, everything: Everything, first: str | None, last: str | None, expected: list[str]
) -> None:
    """Both ends of a range are included."""
    asked = {name: value for name, value in (("start_date", first), ("end_date", last)) if value}
    states = client.answer(f"{everything.base}/status", **asked)["states"]
    assert [state["tracking_date"] for state in states] == expected


@pytest.mark.parametrize("tenant", ["plain", "wrong"])
def test_topic_flags_are_false_without_topics(client: Client, deployment: Deployment, tenant: str) -> None:
    """Without topic attribution, or in ``config_error``, its flags are false (SPEC §3), even if stored otherwise."""
    day = TODAY - timedelta(days=100)
    with closing(open_store(deployment.configuration.tenants[tenant])) as store, store.control.write() as connection:
        save_day(connection, day, billing_gathered=True, resources_gathered=True)
        set_chargebacks(connection, day)
        set_topics(connection, day, is_measured=True)
    answer = client.answer(f"/api/v1/tenants/{tenant}/status", start_date=day, end_date=day)
    (state,) = answer["states"]
    assert state == {"tracking_date": str(day)} | {name: not name.startswith("topic_") for name in [*state][1:]}
    assert len([name for name in state if name.startswith("topic_")]) == 2
