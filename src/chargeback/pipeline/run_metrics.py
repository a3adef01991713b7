"""The metrics of runs. A run is a child process; its parent sums up the reported counters here.

The metrics are updated while a run is in progress, and include the progress of runs that were killed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from chargeback.pipeline.run_messages import Progress, RunOutcome, RunResult, RunStats, Stage

_DURATIONS: Final = (1, 5, 15, 60, 300, 900, 1800, 3600, 7200)
_COUNTS: Final = {
    "dates_gathered": ("chargeback_days_gathered", "Days whose bill was gathered."),
    "dates_calculated": ("chargeback_days_calculated", "Days whose chargebacks were calculated."),
    "lines": ("chargeback_billing_lines_gathered", "Billing lines that were gathered."),
    "chargeback_rows_written": ("chargeback_rows_written", "Chargeback rows that were written."),
}


class RunMetrics:
    """Counters of the runs of these tenants, in a registry of their own. Safe for use by several threads."""

    def __init__(
        self, tenants: Iterable[str], *, in_progress: Callable[[], float], queued: Callable[[], float]
    ) -> None:
        self.registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._last_stats: dict[str, RunStats] = {}
        self._began: dict[str, float] = {}
        self._runs = Counter(
            "chargeback_runs", "Finished runs, by outcome.", ("tenant", "outcome"), registry=self.registry
        )
        self._durations = Histogram(
            "chargeback_run_duration_seconds",
            "Duration of runs.",
            ("tenant",),
            buckets=_DURATIONS,
            registry=self.registry,
        )
        self._counts = {
            field: Counter(name, text, ("tenant",), registry=self.registry) for field, (name, text) in _COUNTS.items()
        }
        self._stages = Counter(
            "chargeback_stage_seconds",
            "Time that runs spent in each stage.",
            ("tenant", "stage"),
            registry=self.registry,
        )
        self._calls = Counter(
            "chargeback_provider_requests",
            "Requests to providers and metrics sources, by HTTP status (none: no answer).",
            ("tenant", "source", "status"),
            registry=self.registry,
        )
        running = Gauge("chargeback_runs_in_progress", "Runs in progress in this process.", registry=self.registry)
        running.set_function(in_progress)
        waiting = Gauge(
            "chargeback_runs_queued",
            "Periodic runs that wait because the maximum number of runs is in progress.",
            registry=self.registry,
        )
        waiting.set_function(queued)
        for tenant in tenants:
            self._start_at_zero(tenant)

    def _start_at_zero(self, tenant: str) -> None:
        """Create all counters with zero, so that a first failure is an increase."""
        for outcome in RunOutcome:
            if outcome is not RunOutcome.RUNNING:
                self._runs.labels(tenant, outcome)
        for stage in Stage:
            self._stages.labels(tenant, stage)
        for counter in self._counts.values():
            counter.labels(tenant)
        self._durations.labels(tenant)

    def begin(self, tenant: str) -> None:
        """Record the start of a run."""
        with self._lock:
            self._last_stats[tenant] = RunStats()
            self._began[tenant] = time.monotonic()

    def on_progress(self, progress: Progress) -> None:
        """Update the metrics from a run's progress message."""
        self._add(progress.tenant, progress.stats)

    def end(self, result: RunResult) -> None:
        """Record the end of a run; without a final report, its last progress counts."""
        self._add(result.tenant, result)
        self._runs.labels(result.tenant, result.outcome).inc()
        with self._lock:
            began = self._began.pop(result.tenant, None)
        if began is not None:
            self._durations.labels(result.tenant).observe(time.monotonic() - began)

    def _add(self, tenant: str, now: RunStats) -> None:
        """Add the increase since the last report."""
        with self._lock:
            before = self._last_stats.get(tenant, RunStats())
            self._last_stats[tenant] = now
            for field, counter in self._counts.items():
                counter.labels(tenant).inc(max(0, getattr(now, field) - getattr(before, field)))
            for stage, seconds in now.stage_seconds.items():
                self._stages.labels(tenant, stage).inc(max(0.0, seconds - before.stage_seconds.get(stage, 0.0)))
            for key, count in now.calls.items():
                self._calls.labels(tenant, *key).inc(max(0, count - before.calls.get(key, 0)))
