"""The service as real processes, and what tests wait for in the storage that they share with them."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from chargeback.store.control.days import read_days
from chargeback.store.tenant import TenantStore


def command(config: Path, *words: str) -> subprocess.Popen[bytes]:
    """A ``chargeback`` process, as a user starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "chargeback", *words, "--config", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def eventually(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until something holds; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def calculated(store: TenantStore) -> int:
    """How many days are done."""
    with store.control.read() as connection:
        return sum(state.chargeback_calculated for state in read_days(connection))


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
