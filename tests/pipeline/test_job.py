"""What a run tells of itself."""

from __future__ import annotations

import time
from itertools import pairwise

from chargeback.demo.faults import Fault
from chargeback.pipeline.events import Stage
from chargeback.pipeline.job import StageClock
from tests.support.deployments import Deployment


def test_the_clock_adds_up_each_stage() -> None:
    """A stage that is entered again goes on; the present one counts up to now."""
    clock = StageClock()
    assert clock.read() == {}
    clock.enter(Stage.GATHERING)
    time.sleep(0.02)
    clock.enter(Stage.GATHERING)
    clock.enter(Stage.CALCULATING)
    first = clock.read()
    time.sleep(0.01)
    second = clock.read()
    assert first[Stage.GATHERING] == second[Stage.GATHERING] >= 0.02
    assert second[Stage.CALCULATING] >= first[Stage.CALCULATING] + 0.01


def test_the_account_of_a_run(deployment: Deployment) -> None:
    """A run tells what it did, how long each stage took, and whom it asked how often, throttled calls included."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=429, retry_after=0, times=2))
    result = deployment.run()
    account = result.account
    assert (account.dates_gathered, account.dates_calculated) == (result.dates_gathered, result.dates_calculated)
    assert (account.rows, account.lines) == (result.chargeback_rows_written, deployment.progress[-1].lines)
    assert {Stage.GATHERING, Stage.CALCULATING} <= account.stage_seconds.keys()
    assert account.calls["ccloud_api", "429"] == 2
    assert account.calls["metrics", "200"] > 0
    again = deployment.run().account
    assert ("ccloud_api", "429") not in again.calls


def test_progress_carries_a_growing_account(deployment: Deployment) -> None:
    """No number of the account falls from one message to the next."""
    deployment.run()
    accounts = [progress.account for progress in deployment.progress]
    for before, after in pairwise(accounts):
        assert after.rows >= before.rows
        assert all(after.stage_seconds[stage] >= spent for stage, spent in before.stage_seconds.items())
        assert all(after.calls[key] >= count for key, count in before.calls.items())
