"""SIGKILL in the middle of a backfill loses nothing: the next run ends with the very bytes of an undisturbed one."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chargeback.demo.server import DemoServer
from chargeback.pipeline.verify import verify
from chargeback.store.control.days import read_days
from tests.pipeline.conftest import Deployment


def start(deployment: Deployment) -> subprocess.Popen[bytes]:
    """The pipeline as a user starts it."""
    command = [sys.executable, "-m", "chargeback", "run", "--config", str(deployment.config_file)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def calculated(deployment: Deployment) -> int:
    """How many days are done."""
    with deployment.store.control.read() as connection:
        return sum(state.chargeback_calculated for state in read_days(connection))


@pytest.fixture
def undisturbed(server: DemoServer, tmp_path: Path) -> Deployment:
    """A tenant that was calculated in peace."""
    (tmp_path / "peace").mkdir()
    deployment = Deployment(server, tmp_path / "peace")
    deployment.run()
    return deployment


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=[pytest.mark.drill, pytest.mark.timeout(1800)])])
def test_killed_again_and_again(deployment: Deployment, undisturbed: Deployment, kills: int) -> None:
    """However often the service dies, no row is lost, doubled or different."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(kills):
        process = start(deployment)
        time.sleep(chance.uniform(0.3, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + 120
    while calculated(deployment) < len(undisturbed.states()):
        assert time.monotonic() < deadline, "the runs after the kills do not finish the work"
        assert start(deployment).wait() in {0, 1}
    assert deployment.all_rows().equals(undisturbed.all_rows())
    assert not [check for check in verify(deployment.store) if check.difference]
    undisturbed.store.close()
