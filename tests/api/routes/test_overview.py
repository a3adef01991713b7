"""The overview of a tenant over HTTP."""

from __future__ import annotations

from datetime import timedelta

import httpx

from chargeback.api.routes.overview import RunList, TenantOverview
from chargeback.reports.health import HealthAnswer
from chargeback.store.control.runs import finish_run, start_run, suspend
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, parameters_of


def test_a_tenant(client: httpx.Client) -> None:
    """The response has the documented fields; without tags there are no tag keys."""
    body = client.get(ACME).json()
    TenantOverview.model_validate(body)
    assert (body["first_date"], body["last_date"], body["tag_keys"]) == (str(DAYS[0]), str(LAST), [])
    assert (body["run"], body["category_keys"]) == (None, [])
    assert body["features"] == {"can_tag": True, "can_run": False, "topics": False}
    assert parameters_of(client.get(ACME, params={"x": "1"})) == ["x"]


def test_a_suspension_changes_the_tag(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Suspending a tenant changes the ETag, although no facts change."""

    tag = own_client.get(ACME).headers["etag"]
    assert own_client.get(ACME, headers={"If-None-Match": tag}).status_code == 304
    with own_store.control.write() as connection:
        suspend(connection, "no more")
    answer = own_client.get(ACME, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.json()["permanent_failure"]) == (200, "no more")


def test_runs(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Runs are listed newest first, including one in progress."""
    assert own_client.get(f"{ACME}/runs").json() == {"items": []}
    with own_store.control.write() as connection:
        done = start_run(connection, 1)
        finish_run(connection, done, outcome="completed", errors=["2026-01-01: late"], counts={"dates_gathered": 3})
        start_run(connection, 2)
    body = own_client.get(f"{ACME}/runs").json()
    RunList.model_validate(body)
    present, ended = body["items"]
    assert (present["status"], present["completed_at"]) == ("running", None)
    assert (ended["status"], ended["dates_gathered"], ended["errors"]) == ("completed", 3, ["2026-01-01: late"])
    assert own_client.get(f"{ACME}/runs", params={"limit": 1}).json()["items"] == [present]
    assert parameters_of(own_client.get(f"{ACME}/runs", params={"limit": 0})) == ["limit"]


def test_what_is_wrong(own_client: httpx.Client, own_store: TenantStore) -> None:
    """A day after the last calculated one waits; a suspension is listed first."""
    body = own_client.get(f"{ACME}/health").json()
    HealthAnswer.model_validate(body)
    (waiting,) = body["problems"]
    assert (body["state"], waiting["kind"], waiting["days"]) == ("bad", "days_waiting", 1)
    assert waiting["start_date"] == waiting["end_date"] == str(LAST + timedelta(days=1))
    assert body["days_calculated"] == len(DAYS)
    with own_store.control.write() as connection:
        suspend(connection, "no more")
    first = own_client.get(f"{ACME}/health").json()["problems"][0]
    assert (first["kind"], first["causes"]) == ("suspended", ["no more"])
