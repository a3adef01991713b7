"""Lines on standard error beside a drawing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

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
    """What a script writes to standard error when that is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    written = bytearray()
    try:
        while piece := os.read(ours, 65536):
            written += piece
    except OSError:  # the end of a terminal
        pass
    finally:
        os.close(ours)
    assert process.wait(60) == 0, written.decode()
    return written.decode()


@pytest.mark.usefixtures("process")
def test_a_child_s_line_stands_on_a_line_of_its_own() -> None:
    """The bar is erased, the line printed whole, and the bar drawn again below it."""
    shown = _terminal_output(_DRAWING)
    before, line, after = shown.partition("a line of a child\r\n")
    assert line
    assert before.endswith("\x1b[2K")  # the erased line of the bar, at its beginning
    assert "2/2" in after
    assert after.endswith("after the bar\r\n")


@pytest.mark.usefixtures("process")
def test_standard_error_is_as_before(tmp_path: Path) -> None:
    """Where standard error is no terminal nothing is redirected, and nothing is lost."""
    said = subprocess.run(
        [sys.executable, "-c", _DRAWING], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    assert "a line of a child\n" in said.stderr
    assert said.stderr.endswith("after the bar\n")
