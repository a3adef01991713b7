"""The supervisor: executes each run under the lease of its tenant and records how it ended.

A run is a child process, which reports its counters. The supervisor adds them to the metrics while the run is in
progress, so that the metrics include runs that were killed.

A tenant is suspended if gathering failed too many times in a row: an operator must act before it runs again. A
suspension is stored only in the control database of the tenant, where the engine, readiness, metrics and the status of
the pipeline read it. A database that does not respond does not suspend a tenant; it is tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from chargeback.config import Configuration
from chargeback.errors import ChargebackError, LeaseHeld, StorageError
from chargeback.logs import log_context
from chargeback.model.days import Clock, utc_now
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.executor import Execution, RunAssignment, RunExecutor
from chargeback.pipeline.run_messages import Progress, RunOutcome, RunResult, RunStats, Stage
from chargeback.store.control import runs
from chargeback.store.control.lease import Lease, LeaseOwner
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)

#: The buckets of the duration of runs, in seconds.
_DURATIONS: Final = (1, 5, 15, 60, 300, 900, 1800, 3600, 7200)
#: The metrics of a run's counters, by their field of :class:`RunStats`: name and description.
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
            "Requests to providers and metrics sources, by HTTP status (none: no response).",
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


class Suspensions:
    """The suspensions of these tenants. Safe for use by several threads.

    Raises (everywhere): StorageError when the control database of the tenant cannot be used.
    """

    def __init__(self, stores: Mapping[str, TenantStore]) -> None:
        self._stores = stores
        self._lock = threading.Lock()
        self._cleared: set[str] = set()
        self._logged: set[str] = set()

    def clear_at_start(self, name: str) -> None:
        """Make the tenant active again at the start of a worker, once per process."""
        with self._lock:
            if name in self._cleared:
                return
        with self._stores[name].control.write() as connection:
            runs.clear_suspension(connection)
        with self._lock:
            self._cleared.add(name)

    def reason(self, name: str) -> str | None:
        """Return why the tenant is suspended, or None."""
        with self._stores[name].control.read() as connection:
            return runs.suspended_because(connection)

    def log_suspension(self, name: str) -> None:
        """Log an alert if the tenant was suspended since the last call, and one if no active tenant is left."""
        reason = self.reason(name)
        with self._lock:
            if reason is None:
                self._logged.discard(name)
                return
            if name in self._logged:
                return
            self._logged.add(name)
            log.critical("ALERT: Tenant %s has been permanently suspended", name)
            log.error("tenant %s: %s", name, reason)
            if self._logged == self._stores.keys():
                log.critical("ALERT: All %d tenant(s) have been permanently suspended", len(self._stores))


class Supervisor:
    """Executes runs through an executor, one at a time for each tenant. Thread-safe.

    ``listener`` is called with the progress of every run, in the thread that waits for it.
    """

    def __init__(
        self,
        configuration: Configuration,
        stores: Mapping[str, TenantStore],
        executor: RunExecutor,
        suspensions: Suspensions,
        *,
        listener: Callable[[Progress], None],
        queued: Callable[[], float],
        clock: Clock = utc_now,
    ) -> None:
        self._configuration = configuration
        self._stores = stores
        self._executor = executor
        self._suspensions = suspensions
        self._listener = listener
        self._clock = clock
        self._lock = threading.Lock()
        self._executions: set[Execution] = set()
        self._stopping = False
        self.run_metrics = RunMetrics(stores, in_progress=lambda: len(self._executions), queued=queued)

    def acquire(self, name: str) -> Lease:
        """Take the lease of a tenant.

        Raises:
            LeaseHeld: a run is in progress.
            StorageError: the tenant's storage cannot be used.
        """
        try:
            return self._stores[name].acquire(LeaseOwner.this_process())
        except LeaseHeld:
            raise LeaseHeld(f"Pipeline is already running for tenant {name}") from None

    def run(self, name: str, lease: Lease, request: RunRequest) -> RunResult:
        """Execute a run under its lease, to its end; release the lease, record and log what it did."""
        with log_context(tenant=name, run=lease.epoch):
            self.run_metrics.begin(name)
            result = self._execute(name, lease, request)
            self.run_metrics.end(result)
            self._close(name, lease, result)
            _log_result(result)
            try:
                self._suspensions.log_suspension(name)
            except StorageError as error:
                log.warning("tenant %s: cannot determine whether it is suspended: %s", name, error)
            return result

    def stop(self) -> None:
        """Ask every run, including those just being started, to stop at its next safe point."""
        with self._lock:
            self._stopping = True
            executions = list(self._executions)
        for execution in executions:
            execution.stop()

    def _execute(self, name: str, lease: Lease, request: RunRequest) -> RunResult:
        configuration = self._configuration
        tenant = configuration.tenants[name]
        assignment = RunAssignment(
            *(tenant, request, lease.epoch, configuration.logging, self._clock, configuration.features.compute)
        )
        try:
            execution = self._executor.start(assignment)
        except OSError as error:
            reason = f"the run could not be started: {error.strerror}"
            return RunResult(name, RunOutcome.FAILED, errors=(reason,), completed_at=self._clock())
        with self._lock:
            self._executions.add(execution)
            stopping = self._stopping
        try:
            if stopping:
                execution.stop()
            return execution.wait(self._on_progress)
        finally:
            with self._lock:
                self._executions.discard(execution)

    def _on_progress(self, progress: Progress) -> None:
        self.run_metrics.on_progress(progress)
        self._listener(progress)

    def _close(self, name: str, lease: Lease, result: RunResult) -> None:
        """Record the end of a run that could not do so itself, and release the lease."""
        try:
            with self._stores[name].control.write() as connection:
                error = result.errors[0] if result.errors else ""
                runs.close_open_run(connection, lease.epoch, outcome=result.outcome, error=error, clock=self._clock)
            lease.release()
        except ChargebackError as error:
            log.error("tenant %s: the end of the run could not be recorded: %s", name, error)


def _log_result(result: RunResult) -> None:
    if result.outcome is RunOutcome.COMPLETED:
        log.info(
            "Tenant %s: gathered=%d, pending=%d, calculated=%d, rows=%d",
            result.tenant,
            result.dates_gathered,
            result.dates_pending,
            result.dates_calculated,
            result.chargeback_rows_written,
        )
    elif result.outcome is RunOutcome.COMPLETED_WITH_ERRORS:
        log.warning("Tenant %s completed with errors: %s", result.tenant, list(result.errors))
    elif result.outcome is RunOutcome.CANCELLED:
        log.info("Tenant %s: %s; the next run continues", result.tenant, result.errors[0])
    elif result.outcome is RunOutcome.INTERRUPTED:
        log.info("Tenant %s: the run was stopped before its end; the next run continues", result.tenant)
    else:
        log.error("Tenant %s: the run %s: %s", result.tenant, result.outcome.replace("_", " "), list(result.errors))
