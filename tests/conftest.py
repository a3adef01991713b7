"""What all tests share: laws are tested without a time limit per example, since the machine may be busy; and the ledger
of the failure drills, which those who work on several cores put together at the end."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.drills.ledger import Ledger

settings.register_profile("chargeback", deadline=None, print_blob=True)
settings.load_profile("chargeback")

_REPORT = "--drill-report"
_DRILLS = "drills"
_LEDGER = pytest.StashKey[Ledger]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the table of the failure drills is kept."""
    parser.addoption(_REPORT, type=Path, metavar="PAGE", help="put the table of the failure drills in this page")


def pytest_configure(config: pytest.Config) -> None:
    """Begin with an empty ledger."""
    config.stash[_LEDGER] = Ledger()


@pytest.fixture
def ledger(pytestconfig: pytest.Config) -> Ledger:
    """Where a drill notes its tries."""
    return pytestconfig.stash[_LEDGER]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of several hands its ledger over."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_DRILLS] = asdict(session.config.stash[_LEDGER])[_DRILLS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker has ended: its drills count like our own."""
    node.config.stash[_LEDGER].add(getattr(node, "workeroutput", {}).get(_DRILLS, {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    """Print the table; keep it where asked, when every drill went well."""
    ledger = config.stash[_LEDGER]
    if not ledger.drills or hasattr(config, "workerinput"):
        return
    terminalreporter.section("failure drills")
    for line in ledger.table():
        terminalreporter.write_line(line)
    page = config.getoption(_REPORT)
    if page is not None and exitstatus == pytest.ExitCode.OK:
        ledger.write(page)
