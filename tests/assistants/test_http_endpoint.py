"""MCP over HTTP is guarded as the rest of the API."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from chargeback.access.caller import Right
from chargeback.api.app import create_app
from chargeback.assistants.server import add_mcp
from chargeback.config.settings import McpSettings
from tests.assistants.conftest import Organisation
from tests.contract.records import Client
from tests.support.assistants import Assistant
from tests.support.callers import Callers, asked_by, caller
from tests.support.facts import tenant_store
from tests.support.serving import served, services_for, wait_until

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPTED = {"Accept": "application/json, text/event-stream"}


def test_a_caller_who_is_known(http: httpx.Client) -> None:
    """An answer is JSON, and there is no session."""
    answer = http.post("/mcp", json=INITIALIZE, headers=ACCEPTED)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in answer.headers
    assert answer.json()["result"]["serverInfo"]["name"] == "chargeback"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer cb_acme_nonsense"}, 401),
        ({"Host": "evil.example.com"}, 421),
        ({"Origin": "https://evil.example.com"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_who_is_refused(http: httpx.Client, headers: dict[str, str], status: int) -> None:
    """Whoever nobody vouches for, and pages of others in a browser of somebody who is known."""
    answer = http.post("/mcp", json=INITIALIZE, headers=ACCEPTED | headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_other_methods(http: httpx.Client, method: str) -> None:
    """Nothing is sent without a question, and there is no session to end."""
    assert http.request(method, "/mcp", headers=ACCEPTED).status_code == 405


def test_it_is_off_unless_configured(rest: Client) -> None:
    """A service without `mcp.enabled` has no such address."""
    assert McpSettings().enabled is False
    assert rest.post("/mcp", json=INITIALIZE, headers=ACCEPTED).status_code == 404


def test_refusals_are_in_the_audit_log(tmp_path: Path) -> None:
    """A tool that asks for a tenant of others finds none, and it is recorded there who asked."""
    known = [caller("alice", Right.READ), caller("root", Right.ADMIN, tenants=("globex",))]
    with tenant_store(tmp_path) as acme, tenant_store(tmp_path, name="globex") as globex:
        app = create_app(services_for(acme, globex, authenticate=Callers.of(known)))
        add_mcp(app, McpSettings(enabled=True))
        with served(app) as address, httpx.Client(base_url=address, headers=asked_by("root"), timeout=60) as client:
            (answer,) = Assistant.over_http(address, asked_by("alice")).ask([("query_costs", {"tenant": "globex"})])
            assert (answer.failed, answer.text) == (True, "There is no tenant 'globex'.")

            def _recorded() -> list[str]:
                log = client.get("/api/v1/tenants/globex/audit").json()["items"]
                return [entry["what"] for entry in log if entry["who"] == "alice"]

            wait_until(lambda: _recorded() != [])
            assert _recorded() == ["request.refused"]


def test_links_lead_to_the_page_where_it_was_asked(organisation: Organisation, whole: str) -> None:
    """The host is the one that the assistant uses."""
    answer = organisation.assistant("http", whole).answer("describe")
    assert answer["link"] == f"{organisation.address}/ui/acme/costs"
