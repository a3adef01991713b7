"""The engine: decides when tenants are run: periodically, on request, or once. The supervisor executes the runs.

The schedule has one thread for each tenant, so that none waits for another; the slots limit the concurrent runs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from chargeback.config import Configuration
from chargeback.errors import (
    EngineBusy,
    LeaseHeld,
    NoRunner,
    PoliciesChanged,
    SchemaError,
    StorageError,
    TenantSuspended,
)
from chargeback.model.days import Clock, render_instant, utc_now
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.child import ChildProcesses
from chargeback.pipeline.executor import RunExecutor
from chargeback.pipeline.run_messages import STOPPED, Progress, RunOutcome, RunResult
from chargeback.pipeline.supervisor import Supervisor, Suspensions
from chargeback.recompute.policies import check_policies
from chargeback.store.control import runs
from chargeback.store.control.lease import EXPIRY, Lease
from chargeback.store.tenant import open_store

if TYPE_CHECKING:
    from chargeback.pipeline.notify import Notifier

log = logging.getLogger(__name__)

#: How long to wait before retrying an unavailable database: increasing delays, in seconds.
_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 30.0
#: How long :meth:`Engine.stop` waits for runs in progress, in seconds; runs are killed before that.
_STOP_SECONDS = 8.0
#: How many tenants :meth:`Engine.run_once` prepares at the same time; one whose database hangs occupies a thread.
_MAX_THREADS = 64
#: The delay after an unexpected error, in seconds.
_AFTER_ERROR = 60.0
#: How long to wait between deliveries of notifications, in seconds.
_DELIVERY_SECONDS = 5.0
_COMPLETED = frozenset({RunOutcome.COMPLETED, RunOutcome.COMPLETED_WITH_ERRORS})


@dataclass(frozen=True, slots=True)
class NextTurn:
    """When to check a tenant again, in seconds, and why. ``is_news`` is False for a repetition, which is not
    logged again."""

    seconds: float
    why: str
    is_news: bool = True


class Schedule:
    """Calls ``take_turn`` for each tenant repeatedly, in a separate thread for each tenant.

    ``take_turn`` returns when to call it next, or None for never.
    """

    def __init__(self, take_turn: Callable[[str], NextTurn | None], clock: Clock = utc_now) -> None:
        self._take_turn = take_turn
        self._clock = clock
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, names: Iterable[str]) -> None:
        """Start the threads of all tenants."""
        for name in names:
            thread = threading.Thread(target=self._repeat, args=(name,), name=f"schedule {name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Start no more turns; return immediately."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Wait for turns in progress, at most this long."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _repeat(self, name: str) -> None:
        while not self._stopping.is_set():
            try:
                turn = self._take_turn(name)
            except Exception:  # the outermost edge of a thread: a tenant must not stop silently
                log.exception("tenant %s: the scheduled run failed", name)
                turn = NextTurn(_AFTER_ERROR, "an unexpected error occurred")
            if turn is None or self._stopping.is_set():
                return
            if turn.is_news:
                at = render_instant((self._clock() + timedelta(seconds=turn.seconds)).replace(microsecond=0))
                log.info("tenant %s: next run at %s, in %.0f s: %s", name, at, turn.seconds, turn.why)
            self._stopping.wait(turn.seconds)


class RunSlots:
    """A fixed number of slots for runs, with a count of waiting runs. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """Return how many runs wait for a slot."""
        return self._waiting

    def take(self) -> bool:
        """Wait for a slot and take it; return False if the slots were closed."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._free > 0 or self._closed)
            finally:
                self._waiting -= 1
            return self._take()

    def try_take(self) -> bool:
        """Take a slot if one is free; return whether it was."""
        with self._changed:
            return self._take()

    def give_back(self) -> None:
        """Release a slot."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def close(self) -> None:
        """Close the slots; all waiting calls return without one."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self) -> bool:
        if self._closed or self._free == 0:
            return False
        self._free -= 1
        return True


class Engine:
    """Runs the tenants of a configuration, as many at the same time as ``features.max_parallel_tenants`` allows.

    ``listener`` is called with the progress of every run, in the thread that waits for it. ``clock`` is the clock of
    the engine and of every run; it must be picklable, because a run may be a process. Safe for use by several threads.

    Attributes:
        failure: why the service must exit: at the start, a tenant's database has a newer schema, or its days were
            calculated by other policies.
    """

    def __init__(
        self,
        configuration: Configuration,
        listener: Callable[[Progress], None] | None,
        executor: RunExecutor | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self.failure: SchemaError | PoliciesChanged | None = None
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
        self._notifiers = self._make_notifiers()
        self._deliveries = Schedule(self._deliver, clock)
        self._on_failure: Callable[[], None] = lambda: None
        self._is_worker = False
        self._lock = threading.Lock()
        self._triggered: set[threading.Thread] = set()
        self._tried: set[str] = set()
        self._opened: set[str] = set()
        self._checked: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._last_news: dict[str, str] = {}

    def _make_notifiers(self) -> dict[str, Notifier]:
        """Return a notifier for each tenant that has sinks."""
        notified = {name: each for name, each in self._configuration.tenants.items() if each.settings.notifications}
        if not notified:
            return {}
        # The clients of webhooks and mail are loaded only if there are sinks.
        from chargeback.pipeline.notify import DeliveryMetrics, Notifier

        metrics, page_url = DeliveryMetrics(self.registry), self._configuration.api.page_url
        return {
            name: Notifier(tenant, self._stores[name], page_url, metrics, self._clock)
            for name, tenant in notified.items()
        }

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
            self._deliveries.start(self._notifiers)

    def stop(self) -> None:
        """Stop every run at its next safe point, and wait for their end."""
        self._stopping.set()
        self._schedule.stop()
        self._deliveries.stop()
        self._places.close()
        self._supervisor.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        with self._lock:
            triggered = list(self._triggered)
        for thread in triggered:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._schedule.join(max(0.0, deadline - time.monotonic()))
        self._deliveries.join(max(0.0, deadline - time.monotonic()))
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
            PoliciesChanged: policies with dates are not those by which days were calculated.
            SchemaError: a control database is ahead of this version, or its history is broken.
        """
        with ThreadPoolExecutor(min(len(tenants), _MAX_THREADS) or 1) as pool:
            return list(pool.map(lambda name: self._run_to_end(name, request), tenants))

    def _run_to_end(self, name: str, request: RunRequest) -> RunResult:
        try:
            self._open(name, restate=request.restate)
            if not self._places.take():
                return RunResult(name, STOPPED.outcome, errors=(STOPPED.error,), completed_at=self._clock())
            try:
                return self._supervisor.run(name, self._supervisor.acquire(name), request)
            finally:
                self._places.give_back()
                self._deliver(name, with_alerts=False)
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

    def _open(self, name: str, *, restate: bool = False) -> None:
        """Migrate the storage to this version's schema and record its owner; a worker also clears a suspension.

        Unless days are to be restated, policies with dates must be those by which the days were calculated. This is
        checked once: the configuration of a process does not change.
        """
        store = self._stores[name]
        store.prepare()
        self._opened.add(name)
        if not restate and name not in self._checked:
            with store.control.read() as connection:
                check_policies(connection, self._configuration.tenants[name])
            self._checked.add(name)
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
        except (PoliciesChanged, SchemaError) as error:
            if name not in self._tried:
                self.failure = error
                self._on_failure()
                return None
            if isinstance(error, SchemaError):
                return self._after_storage_error(name, error)
            return self._news(name, self._configuration.features.refresh_interval, str(error))
        except StorageError as error:
            return self._after_storage_error(name, error)
        finally:
            self._tried.add(name)

    def _deliver(self, name: str, *, with_alerts: bool = True) -> NextTurn:
        """Send a tenant's new events; with ``with_alerts``, also send the conditions that hold to its Alertmanagers,
        which only a process that continues to do so may."""
        try:
            if name in self._opened and name in self._notifiers:
                self._notifiers[name].deliver(self._stopping)
                if with_alerts:
                    self._notifiers[name].alert()
        except StorageError as error:
            # The schedule of the tenant logs this error as a warning.
            log.debug("tenant %s: notifications cannot be sent now: %s", name, error)
            return NextTurn(_MAX_RETRY_SECONDS, str(error), is_news=False)
        return NextTurn(_DELIVERY_SECONDS, "", is_news=False)

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
