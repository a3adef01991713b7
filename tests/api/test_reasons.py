"""The reasons of failures, and which callers see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from chargeback.access.caller import HIDDEN_REASON, Right
from chargeback.store.control import days
from chargeback.store.control.runs import finish_run, start_run, suspend
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS
from tests.support.callers import Callers, asked_by, caller
from tests.support.serving import client_of, services_for

SECRET = "lkc-theirs"


@pytest.fixture
def asked(own_store: TenantStore) -> Iterator[httpx.Client]:
    """A client of a tenant in which everything failed; every reason names the same cluster."""
    with own_store.control.write() as connection:
        days.mark_incomplete(connection, DAYS[1], {days.METRICS: f"HTTP 503 for {SECRET}"})
        suspend(connection, f"HTTP 401 for {SECRET}")
        run = start_run(connection, 1)
        finish_run(connection, run, outcome="failed", errors=[f"no {SECRET}"], counts={})
    known = [caller("whole", Right.ADMIN), caller("team", Right.ADMIN, scope={"identity_id": ["sa-1"]})]
    services = services_for(own_store, authenticate=Callers.of(known))
    error = f"clusters: {SECRET} is unknown"
    tenants = {
        name: replace(view, topic_attribution_status="config_error", topic_attribution_error=error)
        for name, view in services.tenants.items()
    }
    with client_of(replace(services, tenants=tenants)) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (f"{ACME}/status", True),
        (f"{ACME}/pipeline/status", True),
        (ACME, True),
        ("/api/v1/tenants", True),
        ("/api/v1/readiness", True),
        (f"{ACME}/topic-attributions", False),
        (f"{ACME}/unit-costs?per=topic", False),
    ],
)
def test_reasons_are_for_who_sees_the_whole(asked: httpx.Client, path: str, told: bool) -> None:
    """A caller with a scope sees that something failed, but not the reason, which may name things outside the scope."""
    whole = asked.get(path, headers=asked_by("whole"))
    mine = asked.get(path, headers=asked_by("team"))
    assert whole.status_code == mine.status_code == (200 if told else 400)
    assert SECRET in whole.text
    assert SECRET not in mine.text
    assert HIDDEN_REASON in mine.text


def test_what_a_day_lacks_is_told(asked: httpx.Client) -> None:
    """All callers see what a day lacks, because its costs will be calculated again."""
    found = asked.get(f"{ACME}/status", headers=asked_by("team")).json()
    assert found["incomplete"] == [{"tracking_date": f"{DAYS[1]}", "reasons": ["metrics"]}]


def test_no_reason_is_none(own_client: httpx.Client) -> None:
    """Without a failure, there is no reason."""
    assert own_client.get(f"{ACME}/pipeline/status").json()["permanent_failure"] is None
