"""Settings of all tests: which of them are part of the everyday run, how many examples a law has, and the ledger of the
failure drills, which the processes of pytest-xdist put together at the end.

``make test`` is the everyday run (``--everyday``): it leaves out tests that ask for a program or a server outside of
this process, and tries fewer examples of each law and fewer cases of each slow test. ``make drill`` (``--thorough``)
tries every example of each law, of which ``make test-all`` has a fifth. A test says what it asks for by a
fixture or by a parameter (``tests/support/outside.py``); the few that the everyday run keeps nevertheless are marked
``everyday``.
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

# The machine may be busy, so that no example has a time limit. Fixtures of a function serve all examples of a law.
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
    """Add the choice of the everyday run, and where the table of the failure drills is kept."""
    parser.addoption("--everyday", action="store_true", help="only what tells within minutes that a change is right")
    parser.addoption("--thorough", action="store_true", help="every example of each law")
    parser.addoption(_REPORT, type=Path, metavar="PAGE", help="put the table of the failure drills in this page")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Let one process more than there are cores run the tests, which wait a sixth of their time."""
    processes = yield
    return processes + 1


def pytest_configure(config: pytest.Config) -> None:
    """Choose the number of examples of each law, and begin with an empty ledger."""
    _trust_one_authority()
    _keep_files_in_memory()
    chosen = next((each for each in (EVERYDAY, THOROUGH) if config.getoption(f"--{each}")), WHOLE)
    settings.load_profile(chosen)
    config.stash[_LEDGER] = Ledger()
    sys.addaudithook(outside.watch_programs)


def _trust_one_authority() -> None:
    """Let clients trust one authority instead of 140: to read them all takes each client 25 ms of processor time, and
    the tests make thousands."""
    first, end, _ = certifi.contents().partition("-----END CERTIFICATE-----\n")
    folder = Path(tempfile.mkdtemp(prefix="chargeback-authority-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "one.pem").write_text(first + end, encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(folder / "one.pem")


def _keep_files_in_memory() -> None:
    """Let the folders of tests be in memory where there is enough: no test waits for a disk."""
    with suppress(OSError):
        if shutil.disk_usage(_MEMORY).free >= _ENOUGH_MEMORY:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what all tests have in common."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of the everyday run the tests that need a program or a server, and most cases of slow tests."""
    if not config.getoption("--everyday"):
        return
    kept = sampled([item for item in items if is_everyday(item)])
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def sampled(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items without most cases of parametrised tests that ask for storage or the service: a few of each,
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
    """Note which test is set up and runs."""
    outside.running.append(item)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """What ends with a test may have been started for others before it."""
    outside.running.pop()
    return (yield)


@pytest.fixture(scope="session")
def process() -> None:
    """Stand for any program that the test starts."""


@pytest.fixture(scope="session")
def postgresql() -> str:
    """The address of a PostgreSQL server where databases may be created."""
    return postgres_server()


@pytest.fixture(scope="session")
def object_storage() -> ObjectServer:
    """A server of object storage and its bucket."""
    return object_server()


@pytest.fixture
def ledger(pytestconfig: pytest.Config) -> Ledger:
    """Return the ledger in which drills record their tries."""
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
