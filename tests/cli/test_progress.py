"""The display of the progress of runs."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from rich.console import Console

from chargeback.cli.progress import ProgressDisplay
from chargeback.pipeline.run_messages import Progress, RunStats, Stage


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def shown(events: list[tuple[float, Progress]], *, terminal: bool, width: int = 160) -> str:
    """Return the output for events at these seconds."""
    target, clock = io.StringIO(), Clock()
    console = Console(file=target, force_terminal=terminal, width=width, highlight=False, color_system=None)
    with ProgressDisplay(console, clock) as display:
        for seconds, event in events:
            clock.now = 100 + seconds
            display(event)
    return target.getvalue()


def calculating(done: int, rows: int, tenant: str = "acme") -> Progress:
    """Return an event of the calculation."""
    return Progress(
        tenant, Stage.CALCULATING, date(2026, 1, 2), done, 60, RunStats(lines=900, chargeback_rows_written=rows)
    )


def test_plain_lines_are_few() -> None:
    """In a pipe, there is one line per second and tenant, one for each stage, and the last state."""
    events = [
        (0.0, Progress("acme", Stage.GATHERING, None, 0, 60)),
        (0.1, Progress("acme", Stage.GATHERING, None, 30, 60, RunStats(lines=400))),
        (0.2, Progress("acme", Stage.GATHERING, None, 60, 60, RunStats(lines=900))),
        (0.3, calculating(0, 0)),
        (0.4, calculating(1, 500)),
        (1.4, calculating(11, 5500)),
        (1.5, calculating(12, 6000)),
    ]
    assert shown(events, terminal=False).splitlines() == [
        "acme: gathering  0/60 days",
        "acme: gathering  60/60 days  900 lines",
        "acme: calculating  0/60 days  900 lines",
        "acme: calculating  11/60 days  900 lines  5,500 rows  5,000 rows/s",
        "acme: calculating  12/60 days  900 lines  6,000 rows  5,000 rows/s",
    ]


def test_tenants_do_not_silence_each_other() -> None:
    """The limit of one line per second applies per tenant."""
    text = shown([(0.0, calculating(0, 0)), (0.1, calculating(0, 0, "beta"))], terminal=False)
    assert [line.partition(":")[0] for line in text.splitlines()] == ["acme", "beta"]


def test_a_terminal_shows_bars() -> None:
    """On a terminal each tenant has a bar with its stage, days, lines, rows and pace."""
    text = shown([(0.0, calculating(0, 0)), (2.0, calculating(30, 10_000))], terminal=True)
    assert "acme" in text
    assert "calculating" in text
    assert "30/60" in text
    assert "10,000 rows  5,000 rows/s" in text


@pytest.mark.parametrize("width", [24, 40, 60, 80, 100, 149, 150, 160])
@pytest.mark.parametrize("name", ["acme", "a-tenant-with-a-name-of-sixty-three-characters-which-is-the-most"])
def test_days_are_shown_on_every_terminal(width: int, name: str) -> None:
    """At any width, the days are shown and no line is wider than the terminal."""
    text = shown([(0.0, calculating(0, 0, name)), (2.0, calculating(30, 10_000, name))], terminal=True, width=width)
    assert "30/60" in text
    assert all(len(line) <= width for line in re.split(r"[\r\n]|\x1b\[[0-9;?]*[A-Za-z]", text))


_DRAWING = """
import subprocess, sys, time
from chargeback.cli.progress import ProgressDisplay
from chargeback.pipeline.run_messages import Progress, RunStats, Stage

with ProgressDisplay() as display:
    display(Progress("acme", Stage.CALCULATING, None, 1, 2, RunStats()))
    time.sleep(0.3)
    subprocess.run([sys.executable, "-c", "import os; os.write(2, b'a line of a child\\\\n')"], check=True)
    time.sleep(0.3)
    display(Progress("acme", Stage.CALCULATING, None, 2, 2, RunStats()))
sys.stderr.write("after the bar\\n")
"""


def _terminal_output(script: str) -> str:
    """Return the output of a script on standard error, with a terminal as standard error."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    written = bytearray()
    try:
        while piece := os.read(ours, 65536):
            written += piece
    except OSError:  # the terminal is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(60) == 0, written.decode()
    return written.decode()


@pytest.mark.usefixtures("process")
def test_a_child_s_line_stands_on_a_line_of_its_own() -> None:
    """The bar is erased, the line is printed in full, and the bar is drawn again below it."""
    shown = _terminal_output(_DRAWING)
    before, line, after = shown.partition("a line of a child\r\n")
    assert line
    assert before.endswith("\x1b[2K")  # the line of the bar is erased first
    assert "2/2" in after
    assert after.endswith("after the bar\r\n")


@pytest.mark.usefixtures("process")
def test_standard_error_is_as_before(tmp_path: Path) -> None:
    """If standard error is no terminal, it is not redirected, and no output is lost."""
    said = subprocess.run(
        [sys.executable, "-c", _DRAWING], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    assert "a line of a child\n" in said.stderr
    assert said.stderr.endswith("after the bar\n")
