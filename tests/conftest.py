"""Settings of all tests: which tests are part of the everyday run, how many examples a property has, and the ledger of
the failure drills, which is merged from the processes of pytest-xdist at the end.

``make test`` is the everyday run (``--everyday``): it excludes tests that request a program or a server outside of this
process, and uses fewer examples of each property and fewer cases of each slow test. ``make drill`` (``--thorough``)
uses every example of each property, and ``make test-all`` a fifth of them. A test requests programs with a fixture or a
parameter (``tests/support/outside.py``); tests that the everyday run includes nevertheless are marked ``everyday``.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import HealthCheck, settings

from tests.drills.ledger import Ledger
from tests.support import outside
from tests.support.databases import postgres_server
from tests.support.laws import EVERYDAY, EVERYDAY_CASES, EXTENSIVE, THOROUGH, WHOLE, evenly_spread
from tests.support.objects import ObjectServer, object_server
from tests.support.told import check_bodies

# The machine may be busy, so examples have no time limit. Fixtures of a function are shared by all examples.
settings.register_profile(
    THOROUGH, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile(WHOLE, settings.get_profile(THOROUGH), max_examples=30)
settings.register_profile(EVERYDAY, settings.get_profile(THOROUGH), derandomize=True, database=None, max_examples=8)

_MEMORY = Path("/dev/shm")
_ENOUGH_MEMORY = 4 * 2**30
_REPORT = "--drill-report"
_DRILLS = "drills"
_LEDGER = pytest.StashKey[Ledger]()
check_bodies()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the everyday run, and the option for the table of the failure drills."""
    parser.addoption("--everyday", action="store_true", help="only what tells within minutes that a change is right")
    parser.addoption("--thorough", action="store_true", help="every example of each law")
    parser.addoption(_REPORT, type=Path, metavar="PAGE", help="put the table of the failure drills in this page")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Use one process more than there are cores, because tests wait a sixth of their time."""
    processes = yield
    return processes + 1


def pytest_configure(config: pytest.Config) -> None:
    """Set the number of examples of each property, and create an empty ledger."""
    _trust_one_authority()
    _keep_files_in_memory()
    chosen = next((each for each in (EVERYDAY, THOROUGH) if config.getoption(f"--{each}")), WHOLE)
    settings.load_profile(chosen)
    config.stash[_LEDGER] = Ledger()
    sys.addaudithook(outside.watch_programs)


def _trust_one_authority() -> None:
    """Make clients trust one authority instead of 140: reading them all takes each client 25 ms of processor time, and
    the tests create thousands of clients."""
    first, end, _ = certifi.contents().partition("-----END CERTIFICATE-----\n")
    folder = Path(tempfile.mkdtemp(prefix="chargeback-authority-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "one.pem").write_text(first + end, encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(folder / "one.pem")


def _keep_files_in_memory() -> None:
    """Create the folders of tests in memory if there is enough, so that no test waits for a disk."""
    with suppress(OSError):
        if shutil.disk_usage(_MEMORY).free >= _ENOUGH_MEMORY:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_collection_finish() -> None:
    """Exclude the objects that all tests share from garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect in the everyday run tests that need a program or a server, and most cases of slow tests."""
    if not config.getoption("--everyday"):
        return
    kept = sampled([item for item in items if is_everyday(item)])
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def sampled(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items without most cases of parametrised tests that use storage or the service: a few of each remain,
    evenly spread. Tests of pure functions keep all their cases."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        name = item.nodeid.partition("[")[0] if outside.is_slow(item) else item.nodeid
        cases[name].append(item)
    chosen = {item for each in cases.values() for item in evenly_spread(each, EVERYDAY_CASES)}
    return [item for item in items if item in chosen]


def is_everyday(item: pytest.Item) -> bool:
    """Return whether a test is part of the everyday run."""
    if item.get_closest_marker(EVERYDAY):
        return True
    return not (outside.needs_outside(item) or item.get_closest_marker(EXTENSIVE))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Record which test is set up and runs."""
    outside.running.append(item)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Stop recording the test: its teardown may stop programs that earlier tests requested."""
    outside.running.pop()
    return (yield)


@pytest.fixture(scope="session")
def process() -> None:
    """Declare that the test starts a program."""


@pytest.fixture(scope="session")
def postgresql() -> str:
    """Return the address of a PostgreSQL server where databases can be created."""
    return postgres_server()


@pytest.fixture(scope="session")
def object_storage() -> ObjectServer:
    """A server of object storage and its bucket."""
    return object_server()


@pytest.fixture
def ledger(pytestconfig: pytest.Config) -> Ledger:
    """Return the ledger in which drills record their results."""
    return pytestconfig.stash[_LEDGER]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the ledger of a worker process on."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_DRILLS] = asdict(session.config.stash[_LEDGER])[_DRILLS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the drills of a worker process that has ended to our own."""
    node.config.stash[_LEDGER].add(getattr(node, "workeroutput", {}).get(_DRILLS, {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    """Print the table; write it to the requested file if every drill succeeded."""
    ledger = config.stash[_LEDGER]
    if not ledger.drills or hasattr(config, "workerinput"):
        return
    terminalreporter.section("failure drills")
    for line in ledger.table():
        terminalreporter.write_line(line)
    page = config.getoption(_REPORT)
    if page is not None and exitstatus == pytest.ExitCode.OK:
        ledger.write(page)
