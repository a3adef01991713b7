"""The counters and log lines of a run."""

from __future__ import annotations

import logging
import time
from datetime import date
from itertools import pairwise

import pytest

from chargeback.demo.faults import Fault
from chargeback.pipeline import run_context
from chargeback.pipeline.run_context import ProgressWatch, RunRecord, StageClock
from chargeback.pipeline.run_messages import Stage
from chargeback.sources.calls import CALLS
from chargeback.store.control.lease import Lease
from tests.support.deployments import Deployment


def test_the_clock_adds_up_each_stage() -> None:
    """A stage that is entered again continues its time; the present one counts up to now."""
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
    """A run reports its results, the time of each stage, and the calls to each source, including throttled ones."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=429, retry_after=0, times=2))
    result = deployment.run()
    last = deployment.progress[-1]
    assert (last.rows, last.lines) == (result.chargeback_rows_written, result.lines)
    assert result.dates_gathered >= result.dates_calculated > 0
    assert {Stage.GATHERING, Stage.CALCULATING} <= result.stage_seconds.keys()
    assert result.calls["ccloud_api", "429"] == 2
    assert result.calls["metrics", "200"] > 0
    assert ("ccloud_api", "429") not in deployment.run().calls


def test_an_error_of_many_days_is_one_error(deployment: Deployment, caplog: pytest.LogCaptureFixture) -> None:
    """An error that many days share is one error of the run with the number of days, and one warning in the log."""
    deployment.server.faults.add("/prometheus", Fault(status=400, times=None))
    with caplog.at_level(logging.INFO):
        result = deployment.run()
    deployment.server.faults.clear()
    about = [error for error in result.errors if "metrics unavailable" in error]
    first, last = deployment.states()[0].tracking_date, deployment.states()[-1].tracking_date
    assert [error.startswith(f"{len(deployment.states())} days ({first} to {last}): ") for error in about] == [True]
    assert f"POST {deployment.server.prometheus_url}/api/v1/query: " in about[0]
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("chargeback")]
    assert sum("metrics unavailable: " in message for message in logged) == 1


def test_an_error_of_one_day_names_the_day() -> None:
    """The error of a single day has the day; errors without a day are unchanged."""
    tally = RunRecord(errors=["x", "listing failed"], days_of_errors={"x": [date(2026, 11, 1)]})
    assert tally.described_errors() == ["2026-11-01: x", "listing failed"]


@pytest.mark.extensive
def test_progress_carries_a_growing_account(deployment: Deployment) -> None:
    """No number of the statistics decreases from one message to the next."""
    deployment.run()
    accounts = [progress.stats for progress in deployment.progress]
    for before, after in pairwise(accounts):
        assert after.chargeback_rows_written >= before.chargeback_rows_written
        assert all(after.stage_seconds[stage] >= spent for stage, spent in before.stage_seconds.items())
        assert all(after.calls[key] >= count for key, count in before.calls.items())


def test_many_days_are_shown_some_times_a_second(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage shows its begin, its end, and its days in between only as often as someone can see; all are reported."""
    shown: list[tuple[str | None, int, int]] = []
    show = Lease.show

    def _recorded(lease: Lease, stage: str | None, day: date | None, done: int = 0, total: int = 0) -> None:
        shown.append((stage, done, total))
        show(lease, stage, day, done, total)

    monkeypatch.setattr(Lease, "show", _recorded)
    monkeypatch.setattr(run_context, "_SHOW_SECONDS", 3600)
    days = deployment.run().dates_calculated
    assert days > 2
    assert [each for each in shown if each[0] == Stage.CALCULATING] == [
        (Stage.CALCULATING, 0, days),
        (Stage.CALCULATING, days, days),
    ]
    reported = [progress.done for progress in deployment.progress if progress.stage is Stage.CALCULATING]
    assert reported == [*range(days + 1)]


def test_progress_is_seen_for_a_while() -> None:
    """A step or a response of a source is progress; without any the run counts as hanging."""
    watch = ProgressWatch()
    assert watch.is_recent(60)
    time.sleep(0.02)
    assert not watch.is_recent(0.01)
    watch.step()
    assert watch.is_recent(0.01)
    time.sleep(0.02)
    CALLS.count("metrics", "200")
    assert watch.is_recent(0.01)
