"""``chargeback run``."""

from __future__ import annotations

import signal
import subprocess
from datetime import timedelta

import pytest

from chargeback.demo.faults import Fault
from tests.cli.conftest import COMMAND, TODAY, Demo, Run, environment


def counts(line: str) -> list[str]:
    """Return outcome, gathered, due and calculated days from a line of the report."""
    return line.split()[1:5]


def report(stdout: str) -> list[str]:
    """Return the values of the report's line about ``acme``."""
    return counts(next(line for line in stdout.splitlines() if line.startswith(" acme")))


def test_a_first_run_and_a_second(chargeback: Run, demo: Demo) -> None:
    """The first run calculates every day of the window, the second finds nothing to do; both exit 0."""
    first = chargeback("run", "--config", str(demo.file))
    assert (first.returncode, report(first.stdout)) == (0, ["completed", "3", "3", "3"]), first.stderr
    assert "acme: calculating" in first.stderr
    second = chargeback("run", "--config", str(demo.file))
    assert (second.returncode, report(second.stdout)) == (0, ["completed", "3", "0", "0"])


@pytest.mark.extensive
def test_recalculating_one_day(chargeback: Run, calculated: Demo) -> None:
    """--from, --through and --recalculate calculate only these days again."""
    day = (TODAY - timedelta(days=7)).isoformat()
    again = chargeback("run", "--config", str(calculated.file), "--from", day, "--through", day, "--recalculate")
    assert (again.returncode, report(again.stdout)[2:]) == (0, ["1", "1"])


def test_a_range_backwards(chargeback: Run, demo: Demo) -> None:
    """--from after --to, the former name of --through, is a usage error."""
    said = chargeback("run", "--config", str(demo.file), "--from", "2026-02-02", "--to", "2026-02-01")
    assert said.returncode == 2
    assert "--from is after --through" in said.stderr


def test_accepting_less_is_part_of_a_recalculation(chargeback: Run, demo: Demo) -> None:
    """--accept-less without --recalculate is a usage error."""
    said = chargeback("run", "--config", str(demo.file), "--accept-less")
    assert said.returncode == 2
    assert "--accept-less requires --recalculate" in said.stderr


def test_a_run_that_fails(chargeback: Run, demo: Demo) -> None:
    """If a key is refused, the exit code is 1, with the reason in a line and no traceback."""
    demo.server.faults.add("/", Fault(status=401, times=None))
    said = chargeback("run", "--config", str(demo.file), "--tenant", "acme")
    assert (said.returncode, report(said.stdout)[0]) == (1, "failed")
    assert "error: tenant acme: " in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.usefixtures("process")
def test_ctrl_c_ends_a_run(demo: Demo) -> None:
    """SIGINT ends a run soon, at the next safe point, with exit code 130 and a report."""
    demo.server.faults.add("/", Fault(delay=5, times=None))
    process = subprocess.Popen(
        [*COMMAND, "run", "--config", str(demo.file)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert any("acme: gathering" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert report(stdout)[0] == "interrupted"
