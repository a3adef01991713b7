"""The engine: decides when tenants are run: periodically, on request, or once. The supervisor executes the runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from prometheus_client import CollectorRegistry

from chargeback.config import Configuration
from chargeback.errors import EngineBusy, LeaseHeld, NoRunner, SchemaError, StorageError, TenantSuspended
from chargeback.model.days import Clock, render_instant, utc_now
from chargeback.pipeline.child import ChildProcesses
from chargeback.pipeline.executor import RunExecutor
from chargeback.pipeline.run_messages import STOPPED, Progress, RunOutcome, RunRequest, RunResult
from chargeback.pipeline.schedule import NextTurn, Schedule
from chargeback.pipeline.slots import RunSlots
from chargeback.pipeline.supervisor import Supervisor
from chargeback.pipeline.suspensions import Suspensions
from chargeback.store.control import runs
from chargeback.store.control.lease import EXPIRY, Lease
from chargeback.store.tenant import open_store

log = logging.getLogger(__name__)

#: How long to wait before retrying an unavailable database: increasing delays, in seconds.
_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 30.0
#: How long :meth:`Engine.stop` waits for runs in progress, in seconds; runs are killed before that.
_STOP_SECONDS = 8.0
#: How many tenants :meth:`Engine.run_once` prepares at the same time; one whose database hangs occupies a thread.
_MAX_THREADS = 64
_COMPLETED = frozenset({RunOutcome.COMPLETED, RunOutcome.COMPLETED_WITH_ERRORS})


class Engine:
    """Runs the tenants of a configuration, as many at the same time as ``features.max_parallel_tenants`` allows.

    ``listener`` is called with the progress of every run, in the thread that waits for it. ``clock`` is the clock of
    the engine and of every run; it must be picklable, because a run may be a process. Safe for use by several threads.

    Attributes:
        failure: why the service must exit: at the start, a tenant's database has a newer schema.
    """

    def __init__(
        self,
        configuration: Configuration,
        listener: Callable[[Progress], None] | None,
        executor: RunExecutor | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self.failure: SchemaError | None = None
        self._configuration = configuration
        self._clock = clock
        self._stores = {name: open_store(tenant) for name, tenant in configuration.tenants.items()}
        self._stopping = threading.Event()
        self._places = RunSlots(configuration.features.max_parallel_tenants)
        self._suspensions = Suspensions(self._stores)
        self._executor = executor or ChildProcesses()
        self._supervisor = Supervisor(
            configuration,
            self._stores,
            self._executor,
            self._suspensions,
            listener=listener or (lambda _: None),
            queued=lambda: self._places.waiting,
            clock=clock,
        )
        self._schedule = Schedule(self._take_turn, clock)
        self._on_failure: Callable[[], None] = lambda: None
        self._is_worker = False
        self._lock = threading.Lock()
        self._triggered: set[threading.Thread] = set()
        self._tried: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._last_news: dict[str, str] = {}

    @property
    def registry(self) -> CollectorRegistry:
        """Return the metrics of the runs of this process."""
        return self._supervisor.run_metrics.registry

    def start(self, on_failure: Callable[[], None] = lambda: None) -> None:
        """Prepare every tenant, and run it periodically if configured; return immediately.

        Each tenant is prepared as soon as its database responds: its schema is migrated and its suspension is cleared.
        ``on_failure`` is called when the service must exit; :attr:`failure` has the reason.
        """
        self._is_worker = True
        self._on_failure = on_failure
        if not self._stopping.is_set():
            self._schedule.start(self._stores)

    def stop(self) -> None:
        """Stop every run at its next safe point, and wait for their end."""
        self._stopping.set()
        self._schedule.stop()
        self._places.close()
        self._supervisor.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        with self._lock:
            triggered = list(self._triggered)
        for thread in triggered:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._schedule.join(max(0.0, deadline - time.monotonic()))
        self._executor.close()
        for store in self._stores.values():
            store.close()

    def trigger(self, tenant_name: str, request: RunRequest, begin: Callable[[], object] = lambda: None) -> None:
        """Start a run; return when the lease is taken and the run has started. ``begin`` is called immediately before
        the start; if it raises, the run is not started and the lease is released.

        Raises:
            TenantSuspended: the tenant is suspended.
            LeaseHeld: a run is in progress.
            EngineBusy: the maximum number of runs is in progress.
            NoRunner: the engine is stopping.
            StorageError: the tenant's storage cannot be used.
        """
        if self._stopping.is_set():
            raise NoRunner("the service is stopping")
        self._open(tenant_name)
        if reason := self._suspensions.reason(tenant_name):
            raise TenantSuspended(f"Tenant {tenant_name} is suspended: {reason}", tenant=tenant_name)
        lease = self._supervisor.acquire(tenant_name)
        if not self._places.try_take():
            lease.release()
            raise EngineBusy(
                f"The maximum of features.max_parallel_tenants runs are in progress "
                f"({self._configuration.features.max_parallel_tenants}); try again when one of them has ended"
            )
        try:
            begin()
        except BaseException:
            self._places.give_back()
            lease.release()
            raise
        thread = threading.Thread(
            target=self._run_triggered, args=(tenant_name, lease, request), name=f"trigger {tenant_name}", daemon=True
        )
        with self._lock:
            self._triggered.add(thread)
        thread.start()

    def run_once(self, tenants: Sequence[str], request: RunRequest) -> list[RunResult]:
        """Run each of the tenants to its end, several at the same time; return their results in the same order.

        Raises:
            SchemaError: a control database is ahead of this version, or its history is broken.
        """
        with ThreadPoolExecutor(min(len(tenants), _MAX_THREADS) or 1) as pool:
            return list(pool.map(lambda name: self._run_to_end(name, request), tenants))

    def _run_to_end(self, name: str, request: RunRequest) -> RunResult:
        try:
            self._open(name)
            if not self._places.take():
                return RunResult(name, STOPPED.outcome, errors=(STOPPED.error,), completed_at=self._clock())
            try:
                return self._supervisor.run(name, self._supervisor.acquire(name), request)
            finally:
                self._places.give_back()
        except SchemaError:
            raise
        except StorageError as error:
            return RunResult(name, RunOutcome.FAILED, errors=(str(error),), completed_at=self._clock())

    def _run_triggered(self, name: str, lease: Lease, request: RunRequest) -> None:
        try:
            self._supervisor.run(name, lease, request)
        except Exception:  # the outermost edge of a thread whose result no one awaits
            log.exception("tenant %s: the run failed to start", name)
        finally:
            self._places.give_back()
            with self._lock:
                self._triggered.discard(threading.current_thread())

    def _open(self, name: str) -> None:
        """Migrate the storage to this version's schema and record its owner; a worker also clears a suspension."""
        self._stores[name].prepare()
        if self._is_worker:
            self._suspensions.clear_at_start(name)

    def _take_turn(self, name: str) -> NextTurn | None:
        """Prepare the tenant, and run it unless there is a reason not to; return its next turn."""
        try:
            self._open(name)
            turn = self._reason_to_wait(name)
            self._log_recovery(name)
            if not self._configuration.features.enable_periodic_refresh:
                return None
            return turn or self._refresh(name)
        except SchemaError as error:
            if name not in self._tried:
                self.failure = error
                self._on_failure()
                return None
            return self._after_storage_error(name, error)
        except StorageError as error:
            return self._after_storage_error(name, error)
        finally:
            self._tried.add(name)

    def _refresh(self, name: str) -> NextTurn | None:
        """Run the tenant when a slot is free, unless another process already does."""
        if not self._places.take():
            return None
        began = time.monotonic()
        try:
            lease = self._supervisor.acquire(name)
            self._last_news.pop(name, None)
            result = self._supervisor.run(name, lease, RunRequest())
        except LeaseHeld:
            # If that process dies, its work is continued when its lease has expired.
            return self._news(name, EXPIRY.total_seconds(), "a run is in progress")
        finally:
            self._places.give_back()
        return self._turn_after(name, result, time.monotonic() - began)

    def _turn_after(self, name: str, result: RunResult, took: float) -> NextTurn:
        interval = self._configuration.features.refresh_interval
        gap = self._configuration.tenants[name].plugin_settings.min_refresh_gap_seconds
        how = result.outcome.replace("_", " ")
        seconds = interval - took % interval  # what fell due during the run is skipped
        if result.outcome in _COMPLETED and gap - took > seconds:
            return NextTurn(gap - took, f"the last run {how}; min_refresh_gap_seconds is {gap}")
        return NextTurn(seconds, f"the last run {how}; refresh_interval is {interval}")

    def _reason_to_wait(self, name: str) -> NextTurn | None:
        """Return the next turn if the tenant is suspended or was run recently, else None."""
        if reason := self._suspensions.reason(name):
            return self._news(name, self._configuration.features.refresh_interval, f"it is suspended: {reason}")
        gap = timedelta(seconds=self._configuration.tenants[name].plugin_settings.min_refresh_gap_seconds)
        with self._stores[name].control.read() as connection:
            last = runs.last_completed(connection)
        if last is None:
            return None
        started, outcome = last
        # A start in the future was recorded with a clock that has been set back since: do not wait for it.
        left = (gap - abs(self._clock() - started)).total_seconds()
        if left <= 0:
            return None
        began = render_instant(started.replace(microsecond=0))
        how = outcome.replace("_", " ")
        why = f"the last run began at {began} and {how}; min_refresh_gap_seconds is {gap.total_seconds():.0f}"
        return self._news(name, left, why)

    def _after_storage_error(self, name: str, error: StorageError) -> NextTurn:
        """Retry with increasing delays, without limit."""
        attempts = self._attempts[name] = self._attempts.get(name, 0) + 1
        seconds = min(_FIRST_RETRY_SECONDS * 2.0 ** min(attempts - 1, 10), _MAX_RETRY_SECONDS)
        if self._news(name, seconds, str(error)).is_news:
            log.error("tenant %s: its storage cannot be used; trying again until it can: %s", name, error)
        return NextTurn(seconds, str(error), is_news=False)

    def _log_recovery(self, name: str) -> None:
        if self._attempts.pop(name, 0):
            self._last_news.pop(name, None)
            log.info("tenant %s: its storage can be used again", name)

    def _news(self, name: str, seconds: float, why: str) -> NextTurn:
        """Return a turn that is logged unless the last message about the tenant was the same."""
        is_news = self._last_news.get(name) != why
        self._last_news[name] = why
        return NextTurn(seconds, why, is_news=is_news)
