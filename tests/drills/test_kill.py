"""SIGKILL in the middle of a backfill loses nothing: the next run ends with the very bytes of an undisturbed one."""

from __future__ import annotations

import random
import time
from pathlib import Path

from chargeback.demo.server import DemoServer
from tests.drills.ledger import Ledger, StoredResult, tries
from tests.support.deployments import Deployment
from tests.support.processes import command, eventually


@tries(1, 100, seconds=3600)
def test_killed_and_started_again(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """Each try is a backfill of its own, killed at a moment of its own, and ended by one more run."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    lasts = _seconds_of_a_backfill(server, tmp_path)
    for number in range(tries):
        deployment = Deployment.within(server, tmp_path / f"{number}")
        with ledger.drill("SIGKILL at a random moment of a backfill") as drill:
            process = command(deployment.config_file, "run")
            time.sleep(chance.uniform(0, lasts))
            process.kill()
            process.wait()
            # The dead process's child lives on for a moment, and holds the lease for as long.
            eventually(lambda: command(deployment.config_file, "run").wait() == 0)  # noqa: B023 - called at once
            drill.compare(undisturbed, deployment.store)
        deployment.store.close()


def _seconds_of_a_backfill(server: DemoServer, folder: Path) -> float:
    deployment = Deployment.within(server, folder / "timed")
    started = time.monotonic()
    assert command(deployment.config_file, "run").wait() == 0
    deployment.store.close()
    return time.monotonic() - started
