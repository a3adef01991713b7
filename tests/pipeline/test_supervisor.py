"""Suspensions of tenants, and the metrics that a supervisor computes from the messages of runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chargeback.config import Configuration
from chargeback.demo.faults import Fault
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.engine import Engine
from chargeback.pipeline.run_messages import Progress, RunOutcome, RunResult, RunStats, Stage
from chargeback.pipeline.supervisor import RunMetrics, Suspensions
from chargeback.store.control.runs import suspend
from tests.pipeline.test_engine import configuration, start
from tests.support.deployments import Deployment
from tests.support.executors import HeldRuns
from tests.support.facts import tenant_store
from tests.support.processes import eventually


def test_a_start_forgives_once(tmp_path: Path) -> None:
    """A suspension from before the worker's start is cleared; one that is made while it runs remains."""
    with tenant_store(tmp_path) as store:
        suspensions = Suspensions({"acme": store})
        for expected in (None, "the bill cannot be had"):
            with store.control.write() as connection:
                suspend(connection, "the bill cannot be had")
            suspensions.clear_at_start("acme")
            assert suspensions.reason("acme") == expected


__all__ = ["configuration", "start"]


def value(run_metrics: RunMetrics | Engine, name: str, **labels: str) -> float | None:
    """Return a metric of tenant acme."""
    return run_metrics.registry.get_sample_value(name, {"tenant": "acme", **labels})


def counted(rows: int, calls: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return the counters of a run as the fields of its statistics."""
    seconds = {Stage.CALCULATING: rows / 100}
    return {"dates_calculated": rows // 10, "chargeback_rows_written": rows, "stage_seconds": seconds, "calls": calls}


def stats(rows: int, calls: Mapping[tuple[str, str], int]) -> RunStats:
    """Return the statistics of a run."""
    return RunStats(**counted(rows, calls))


def progress(now: RunStats) -> Progress:
    """Return a progress message of a run."""
    return Progress("acme", Stage.CALCULATING, stats=now)


@pytest.fixture
def run_metrics() -> RunMetrics:
    """Return the metrics of tenant acme."""
    return RunMetrics(["acme"], in_progress=lambda: 3, queued=lambda: 2)


def test_everything_begins_at_zero(run_metrics: RunMetrics) -> None:
    """The counters of a tenant exist before its first run, so that its first failure is an increase."""
    assert value(run_metrics, "chargeback_runs_total", outcome="failed") == 0
    assert value(run_metrics, "chargeback_stage_seconds_total", stage="retention") == 0
    assert value(run_metrics, "chargeback_rows_written_total") == 0
    assert value(run_metrics, "chargeback_runs_total", outcome="running") is None


def test_numbers_grow_while_a_run_is_under_way(run_metrics: RunMetrics) -> None:
    """Each message adds what is new in it, and the result adds the rest."""
    run_metrics.begin("acme")
    run_metrics.on_progress(progress(stats(100, {("metrics", "200"): 1})))
    assert value(run_metrics, "chargeback_rows_written_total") == 100
    run_metrics.on_progress(progress(stats(250, {("metrics", "200"): 4, ("metrics", "429"): 1})))
    run_metrics.end(
        RunResult("acme", RunOutcome.COMPLETED, **counted(300, {("metrics", "200"): 5, ("metrics", "429"): 1}))
    )
    assert value(run_metrics, "chargeback_rows_written_total") == 300
    assert value(run_metrics, "chargeback_days_calculated_total") == 30
    assert value(run_metrics, "chargeback_stage_seconds_total", stage="calculating") == 3
    assert value(run_metrics, "chargeback_provider_requests_total", source="metrics", status="200") == 5
    assert value(run_metrics, "chargeback_provider_requests_total", source="metrics", status="429") == 1
    assert value(run_metrics, "chargeback_run_duration_seconds_count") == 1


def test_a_second_run_adds_to_the_first(run_metrics: RunMetrics) -> None:
    """Each run counts from zero, and the totals continue."""
    for _ in range(2):
        run_metrics.begin("acme")
        run_metrics.on_progress(progress(stats(100, {})))
        run_metrics.end(RunResult("acme", RunOutcome.FAILED, **counted(100, {})))
    assert value(run_metrics, "chargeback_rows_written_total") == 200
    assert value(run_metrics, "chargeback_runs_total", outcome="failed") == 2


def test_a_run_that_was_killed_counts_with_what_it_told(run_metrics: RunMetrics) -> None:
    """A result without statistics subtracts nothing."""
    run_metrics.begin("acme")
    run_metrics.on_progress(progress(stats(100, {})))
    run_metrics.end(RunResult("acme", RunOutcome.TIMED_OUT))
    assert value(run_metrics, "chargeback_rows_written_total") == 100
    assert value(run_metrics, "chargeback_runs_total", outcome="timed_out") == 1
    assert run_metrics.registry.get_sample_value("chargeback_runs_in_progress") == 3
    assert run_metrics.registry.get_sample_value("chargeback_runs_queued") == 2


@pytest.mark.extensive
def test_the_counts_of_a_child_process_arrive(deployment: Deployment, start: Callable[..., Engine]) -> None:
    """The counts of a child process are in the metrics of the engine that started it."""
    deployment.server.faults.add("/billing/v1/costs", Fault(status=429, retry_after=0, times=1))
    engine = start()
    (result,) = engine.run_once(["acme"], RunRequest())
    assert value(engine, "chargeback_runs_total", outcome="completed") == 1
    assert value(engine, "chargeback_rows_written_total") == result.chargeback_rows_written > 0
    assert value(engine, "chargeback_days_calculated_total") == result.dates_calculated
    assert value(engine, "chargeback_provider_requests_total", source="ccloud_api", status="429") == 1
    assert engine.registry.get_sample_value("chargeback_runs_in_progress") == 0


def test_runs_that_wait_for_others_are_counted(
    deployment: Deployment, configuration: Configuration, tmp_path: Path
) -> None:
    """With one slot, the second tenant is queued until the first run has ended."""
    other = Deployment.within(deployment.server, tmp_path / "beta")
    tenants = {"acme": deployment.tenant, "beta": replace(other.tenant, name="beta")}
    features = configuration.features.model_copy(update={"max_parallel_tenants": 1})
    executor = HeldRuns()
    engine = Engine(replace(configuration, tenants=tenants, features=features), None, executor, deployment.clock)

    def counts() -> list[float | None]:
        names = ("chargeback_runs_in_progress", "chargeback_runs_queued")
        return [engine.registry.get_sample_value(name) for name in names]

    assert counts() == [0, 0]
    engine.start()
    try:
        eventually(lambda: counts() == [1, 1])
        executor.started[0].end()
        eventually(lambda: len(executor.started) == 2 and counts() == [1, 0])
        executor.started[1].end()
        eventually(lambda: counts() == [0, 0])
    finally:
        engine.stop()


@pytest.mark.extensive
def test_every_line_about_a_run_names_it(
    deployment: Deployment,
    start: Callable[..., Engine],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """With JSON logs every line of a run has tenant and run, and those about a day its date, from every thread."""
    import json
    from dataclasses import replace

    from chargeback.config.settings import LoggingSettings
    from chargeback.logs import configure_logging

    deployment.server.faults.add("/prometheus/api/v1/query", Fault(status=503, times=3))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    settings = LoggingSettings(level="DEBUG", format="json")
    engine = start()
    engine._supervisor._configuration = replace(engine._configuration, logging=settings)
    configure_logging(settings)
    try:
        engine.run_once(["acme"], RunRequest())
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    of_runs = [line for line in lines if line["logger"].startswith(("chargeback.pipeline", "chargeback.sources"))]
    assert len(of_runs) > 10
    assert {(line["tenant"], line["run"]) for line in of_runs} == {("acme", "1")}
    queries = [line for line in of_runs if "/api/v1/query" in line["message"]]
    assert queries
    assert all(line["date"] for line in queries)
