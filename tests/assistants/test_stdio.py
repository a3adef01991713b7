"""``chargeback mcp``, as an assistant starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chargeback import how_to_install
from chargeback.assistants.tools import TOOLS
from tests.assistants.conftest import Organisation
from tests.cli.conftest import environment
from tests.contract.records import Client
from tests.support.assistants import Assistant

pytestmark = pytest.mark.usefixtures("process")


def test_the_answers_are_those_of_the_service(organisation: Organisation, rest: Client) -> None:
    """Without a token, everything that the configuration has; the answers are the same as over HTTP."""
    file = organisation.deployment.configuration.path
    assistant = Assistant.over_stdio(file, environment())
    assert [tool.name for tool in assistant.tools()] == list(TOOLS)
    answer = assistant.answer("query_costs", tenant="acme", period="7d", group_by=["identity_id"])
    expected = rest.answer("/api/v1/tenants/acme/costs", period="7d", compare="none")
    assert answer["total"]["amount"] == expected["total"]["amount"]
    assert answer["link"].startswith("http://127.0.0.1:8080/ui/acme/costs?")


def test_the_end_of_the_input_ends_it(organisation: Organisation) -> None:
    """Nothing but messages of the protocol is written to standard output."""
    command = [sys.executable, "-m", "chargeback", "mcp", "--config", str(organisation.deployment.configuration.path)]
    said = subprocess.run(
        command, env=environment(), input="", capture_output=True, text=True, timeout=240, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")


def test_without_the_extra(organisation: Organisation, tmp_path: Path) -> None:
    """The message says what to install."""
    (tmp_path / "mcp.py").write_text("raise ImportError('not installed')", encoding="utf-8")
    command = [sys.executable, "-m", "chargeback", "mcp", "--config", str(organisation.deployment.configuration.path)]
    without = environment(PYTHONPATH=str(tmp_path))
    said = subprocess.run(command, env=without, input="", capture_output=True, text=True, timeout=240, check=False)
    assert said.returncode == 1
    assert said.stderr == f"error: assistants need the extra mcp: {how_to_install('mcp')}\n"
