"""SIGTERM ends the process at any moment of its start."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Demo, environment
from tests.support.processes import free_port

pytestmark = pytest.mark.usefixtures("process")

#: Seconds after which a process counts as hanging; a busy machine makes a stop of ten seconds several times as long.
LIMIT = 90


def _service(mode: str) -> Callable[[Path, Demo], list[str]]:
    def words(folder: Path, demo: Demo) -> list[str]:
        file = folder / "chargeback.yaml"
        file.write_text(demo.file.read_text().replace("port: 8080", f"port: {free_port()}"))
        return ["serve", "--mode", mode, "--config", str(file)]

    return words


def _demo(folder: Path, demo: Demo) -> list[str]:
    return ["demo", "--size", "small", "--days", "6", "--port", str(free_port()), "--data", str(folder / "data")]


STARTS = {"both": _service("both"), "api": _service("api"), "worker": _service("worker"), "demo": _demo}


def seconds_to_end(words: list[str], folder: Path, delay: float) -> float:
    """Return the seconds that a process takes to end after a signal, sent some time after its start."""
    process = subprocess.Popen(
        [*COMMAND, *words], env=environment(), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        told = time.monotonic()
        process.wait(2 * LIMIT)
        return time.monotonic() - told
    finally:
        process.kill()
        process.wait()


def moments(count: int, seconds: float) -> list[float]:
    """Return a number of evenly spread moments."""
    return [seconds * (number + 1) / count for number in range(count)]


def test_told_to_end_while_starting(tmp_path: Path, demo: Demo) -> None:
    """The process ends in time, at moments from before the first import to after the first response."""
    for number, delay in enumerate(moments(4, 3)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        assert seconds_to_end(STARTS["both"](folder, demo), folder, delay) < LIMIT


@pytest.mark.drill
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("start", STARTS)
def test_told_to_end_at_forty_moments(tmp_path: Path, demo: Demo, start: str) -> None:
    """The process ends in time, at forty moments."""
    for number, delay in enumerate(moments(40, 8)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        assert seconds_to_end(STARTS[start](folder, demo), folder, delay) < LIMIT
