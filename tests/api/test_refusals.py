"""Refused requests are recorded in the audit log of their tenant, up to a limit."""

from __future__ import annotations

import httpx
import pytest

from chargeback.api import refusals
from tests.api.conftest import ACME
from tests.api.routes.test_audit import log_of
from tests.support.serving import wait_until

ELSEWHERE = {"Origin": "https://elsewhere.example"}


def test_refused_requests(own_client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused origin or host is recorded once a day, up to a limit; requests about unknown tenants are not
    recorded."""
    monkeypatch.setattr(refusals, "MOST_A_DAY", 3)
    views = f"{ACME}/views"
    assert own_client.post(views, json={}, headers=ELSEWHERE).status_code == 403
    assert own_client.delete(f"{views}/1", headers=ELSEWHERE).status_code == 403
    wait_until(lambda: len(log_of(own_client)) == 1)
    assert own_client.get(views, headers={"Host": "evil.example"}).status_code == 421
    assert own_client.post("/api/v1/tenants/nobody/views", json={}, headers=ELSEWHERE).status_code == 403
    wait_until(lambda: len(log_of(own_client)) == 2)
    for number in range(5):
        origin = {"Origin": f"https://elsewhere{number}.example"}
        assert own_client.post(views, json={}, headers=origin).status_code == 403
    wait_until(lambda: len(log_of(own_client)) == 3)
    third, second, first = log_of(own_client, what="request.refused")
    assert (first["target"], first["before"]) == (f"POST {views}", None)
    assert first["after"] == {"status": 403, "origin": "https://elsewhere.example"}
    assert second["after"] == {"status": 421, "host": "evil.example"}
    assert third["after"] == {"status": 403, "origin": "https://elsewhere0.example"}
