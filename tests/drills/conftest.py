"""What the drills share: a served organisation, a tenant on it, what an undisturbed one has, and the ledger."""

from __future__ import annotations

import pytest

from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.pipeline.events import Outcome as Ending
from tests.conftest import DRILL_REPORT
from tests.drills.ledger import FAULTS, Ledger, Outcome
from tests.support.deployments import Deployment, deployment, organisation, server

__all__ = ["deployment", "organisation", "server"]

_LEDGER = pytest.StashKey[Ledger]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with an empty ledger."""
    config.stash[_LEDGER] = Ledger()


@pytest.fixture
def ledger(pytestconfig: pytest.Config) -> Ledger:
    """Where a drill notes its tries."""
    return pytestconfig.stash.setdefault(_LEDGER, Ledger())


@pytest.fixture(scope="session")
def undisturbed(organisation: Organisation, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What a tenant of the same organisation has that was calculated in peace."""
    with DemoServer(organisation) as server:
        tenant = Deployment(server, tmp_path_factory.mktemp("undisturbed"))
        assert tenant.run().outcome is Ending.COMPLETED
        outcome = Outcome.of(tenant.store)
        tenant.store.close()
    return outcome


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    """Print the table; keep it where asked, when every fault was drilled and every drill went well."""
    ledger = config.stash.get(_LEDGER, Ledger())
    if not ledger.drills:
        return
    terminalreporter.section("failure drills")
    for line in ledger.table():
        terminalreporter.write_line(line)
    page = config.getoption(DRILL_REPORT)
    if page is not None and exitstatus == pytest.ExitCode.OK:
        missing = set(FAULTS) - ledger.drills.keys()
        assert not missing, f"not drilled: {sorted(missing)}"
        ledger.write(page)
