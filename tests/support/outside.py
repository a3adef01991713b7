"""Slow resources of tests: programs and servers outside of the test's process, and whole runs; and which tests use
them.

A test requests one with a fixture of its name, or with the value of a parameter. ``make test`` excludes these tests,
except those marked ``everyday``. A test that uses a program without requesting it fails in every run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import chargeback
from tests.support.clock import FAKETIME

#: Names of fixtures, and values of parameters, for a program, a server, or a whole run.
OUTSIDE: Final = frozenset(
    {
        "alertmanager",
        "object_storage",
        "postgresql",
        "process",
        "prometheus",
        # The storage after a run with the served organisation: tests run it again.
        "prepared",
        # Values of parameters: a bucket for facts, a schema of PostgreSQL, a separate process of an assistant.
        "s3",
        "schema",
        "stdio",
    }
)

#: Fixtures that make a case slow within the test's process: the whole service, a run, an engine, a database.
SLOW: Final = frozenset({"ask", "connection_string", "deployment", "edges", "laboratory", "read", "served"})

_SERVICE: Final = str(Path(chargeback.__file__).parent)
#: The running test.
running: Final[list[pytest.Item]] = []


def needs_outside(item: pytest.Item) -> bool:
    """Return whether a test uses a program, a server, or a whole run."""
    callspec = getattr(item, "callspec", None)
    values = {each for each in callspec.params.values() if isinstance(each, str)} if callspec else set()
    return not OUTSIDE.isdisjoint({*getattr(item, "fixturenames", ()), *values})


def is_slow(item: pytest.Item) -> bool:
    """Return whether a test uses a fixture that makes each of its cases slow."""
    return not SLOW.isdisjoint(getattr(item, "fixturenames", ()))


def declared(what: str) -> None:
    """Fail unless the running test has requested a program or a server."""
    if running and not needs_outside(running[-1]):
        pytest.fail(f"The test uses {what} without asking for it by a fixture (tests/support/outside.py).")


def watch_programs(event: str, args: tuple[Any, ...]) -> None:
    """Fail a test that starts a program without requesting it: a hook of ``sys.addaudithook``. Exempt are programs that
    the service starts, such as the process that renders a PDF file, and those that continue a day after midnight
    (:func:`tests.support.clock.words_within`)."""
    if event == "subprocess.Popen" and args[1][0] != FAKETIME and not _is_of_the_service(sys._getframe()):
        declared(str(args[1][:3]))


def _is_of_the_service(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_SERVICE):
            return True
        frame = frame.f_back
    return False
