"""MCP over HTTP, with the access checks of the API, and over standard input and output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from chargeback import how_to_install
from chargeback.access.caller import Right
from chargeback.api.app import create_app
from chargeback.assistants.server import add_mcp
from chargeback.assistants.tools import TOOLS
from chargeback.config.settings import McpSettings
from tests.assistants.conftest import Organisation
from tests.cli.conftest import environment
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
    """An identified caller gets a JSON response, without a session."""
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
    """Requests without an identity are refused, and so are cross-site requests from the browser of a known user."""
    answer = http.post("/mcp", json=INITIALIZE, headers=ACCEPTED | headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_other_methods(http: httpx.Client, method: str) -> None:
    """Only POST is supported, because there are no sessions."""
    assert http.request(method, "/mcp", headers=ACCEPTED).status_code == 405


def test_it_is_off_unless_configured(rest: Client) -> None:
    """Without `mcp.enabled` the address does not exist."""
    assert McpSettings().enabled is False
    assert rest.post("/mcp", json=INITIALIZE, headers=ACCEPTED).status_code == 404


def test_refusals_are_in_the_audit_log(tmp_path: Path) -> None:
    """A tool that names another tenant gets an error, and the audit log of that tenant records the caller."""
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
    """Links use the host of the request."""
    answer = organisation.assistant("http", whole).answer("describe")
    assert answer["link"] == f"{organisation.address}/ui/acme/costs"


@pytest.mark.usefixtures("process")
def test_the_answers_are_those_of_the_service(organisation: Organisation, rest: Client) -> None:
    """Over standard input, a caller sees all tenants of the configuration, and the figures are those of the API."""
    file = organisation.deployment.configuration.path
    assistant = Assistant.over_stdio(file, environment())
    assert [tool.name for tool in assistant.tools()] == list(TOOLS)
    answer = assistant.answer("query_costs", tenant="acme", period="7d", group_by=["identity_id"])
    expected = rest.answer("/api/v1/tenants/acme/costs", period="7d", compare="none")
    assert answer["total"]["amount"] == expected["total"]["amount"]
    assert answer["link"].startswith("http://127.0.0.1:8080/ui/acme/costs?")


@pytest.mark.usefixtures("process")
def test_the_end_of_the_input_ends_it(organisation: Organisation) -> None:
    """The command ends with its input, and writes only protocol messages to standard output."""
    command = [sys.executable, "-m", "chargeback", "mcp", "--config", str(organisation.deployment.configuration.path)]
    said = subprocess.run(
        command, env=environment(), input="", capture_output=True, text=True, timeout=240, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.usefixtures("process")
def test_without_the_extra(organisation: Organisation, tmp_path: Path) -> None:
    """Without the extra, the message says what to install."""
    (tmp_path / "mcp.py").write_text("raise ImportError('not installed')", encoding="utf-8")
    command = [sys.executable, "-m", "chargeback", "mcp", "--config", str(organisation.deployment.configuration.path)]
    without = environment(PYTHONPATH=str(tmp_path))
    said = subprocess.run(command, env=without, input="", capture_output=True, text=True, timeout=240, check=False)
    assert said.returncode == 1
    assert said.stderr == f"error: assistants need the extra mcp: {how_to_install('mcp')}\n"
