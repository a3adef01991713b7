"""SIGKILL in the middle of a backfill loses nothing: the next run ends with exactly the bytes of an undisturbed one."""

from __future__ import annotations

import random
import time
from pathlib import Path

from chargeback.demo.server import DemoServer
from chargeback.model.days import utc_now
from chargeback.recompute.verify import verify_files
from tests.drills.ledger import Ledger, StoredResult, tries
from tests.support.databases import scratch_database
from tests.support.deployments import Deployment
from tests.support.objects import object_server
from tests.support.processes import command, eventually


@tries(1, 100, seconds=3600)
def test_killed_and_started_again(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """Each try is a separate backfill that is killed at a random moment and completed by one more run."""
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
            # The child of the killed process lives on for a moment and still holds the lease.
            eventually(lambda: command(deployment.config_file, "run").wait() == 0)  # noqa: B023 - called at once
            drill.compare(undisturbed, deployment.store)
        deployment.store.close()


@tries(0, 50, seconds=3600)
def test_killed_over_postgresql_and_a_bucket(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """After each try, every listed file exists and is unchanged, and the result equals that of a tenant on a disk."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance, lasts = random.Random(seed), 0.0
    for number in range(tries + 1):
        deployment = Deployment.within(server, tmp_path / f"{number}")
        with scratch_database("postgresql", tmp_path) as connection_string:
            deployment.store_in(connection_string, object_server())
            if not lasts:
                started = time.monotonic()
                assert command(deployment.config_file, "run").wait() == 0
                lasts = time.monotonic() - started
                deployment.store.close()
                continue
            with ledger.drill("SIGKILL at a random moment of a run over PostgreSQL and a bucket") as drill:
                process = command(deployment.config_file, "run")
                time.sleep(chance.uniform(0, lasts))
                process.kill()
                process.wait()
                assert not list(verify_files(deployment.store, utc_now()))
                eventually(lambda: command(deployment.config_file, "run").wait() == 0, 120)  # noqa: B023 - called at once
                assert not list(verify_files(deployment.store, utc_now()))
                drill.compare(undisturbed, deployment.store)
            deployment.store.close()


def _seconds_of_a_backfill(server: DemoServer, folder: Path) -> float:
    deployment = Deployment.within(server, folder / "timed")
    started = time.monotonic()
    assert command(deployment.config_file, "run").wait() == 0
    deployment.store.close()
    return time.monotonic() - started
