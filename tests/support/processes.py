"""The service as real processes, and functions that wait for their effects in the shared storage."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from chargeback.model.days import utc_today
from chargeback.store.control.days import read_days
from chargeback.store.tenant import TenantStore
from tests.support.clock import FAKED, words_within

#: The day on which the tests began: the current day of organisations that are read on the present day.
BEGAN: Final = utc_today()


def command(config: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a ``chargeback`` process, as a user does, on the day on which the tests began."""
    return started([*words, "--config", str(config)], output=subprocess.DEVNULL)


def started(
    words: Sequence[str], *, output: int | IO[bytes], within: Sequence[str] = (), **environment: str
) -> subprocess.Popen[bytes]:
    """Start a ``chargeback`` process on the day on which the tests began, with the prefix ``within``."""
    under = words_within(BEGAN)
    return subprocess.Popen(
        [*within, *under, sys.executable, "-m", "chargeback", *words],
        env=os.environ | (FAKED if under else {}) | environment,
        stdout=output,
        stderr=output,
    )


def eventually(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until a condition is true; fail after a timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def calculated(store: TenantStore) -> int:
    """Return the number of calculated days."""
    with store.control.read() as connection:
        return sum(state.chargebacks.is_current for state in read_days(connection))


def free_port() -> int:
    """Return a loopback port on which no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
