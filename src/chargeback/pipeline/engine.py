"""The engine: runs of many tenants, periodically and on demand, each in a child process under the tenant's lease."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from apscheduler.executors.pool import ThreadPoolExecutor as JobExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from prometheus_client import CollectorRegistry

from chargeback.config import Configuration, Tenant
from chargeback.errors import ChargebackError, LeaseHeld, NoRunner, SchemaError, StorageError, TenantSuspended
from chargeback.logs import log_context
from chargeback.model.days import has_passed, utc_now
from chargeback.pipeline.child import Assignment, RunningChild
from chargeback.pipeline.events import Outcome, Progress, RunRequest, RunResult
from chargeback.pipeline.meters import RunMeters
from chargeback.store.control import runs
from chargeback.store.control.lease import EXPIRY, Lease, Owner, acquire
from chargeback.store.tenant import TenantStore, open_store

log = logging.getLogger(__name__)


class Engine:
    """Runs the tenants of a configuration.

    ``listener`` hears the progress of every run, from the thread that waits for it. Safe for use by several threads.
    """

    def __init__(self, configuration: Configuration, listener: Callable[[Progress], None] | None) -> None:
        self._configuration = configuration
        self._listener = listener or (lambda _: None)
        self._stores = {name: open_store(tenant) for name, tenant in configuration.tenants.items()}
        self._lock = threading.Lock()
        self._children: set[RunningChild] = set()
        self._stopping = threading.Event()
        self._triggered = ThreadPoolExecutor(len(self._stores) or 1, thread_name_prefix="trigger")
        self._refreshing = JobExecutor(configuration.features.max_parallel_tenants)
        self._scheduler: BackgroundScheduler | None = None
        self._suspensions = Suspensions(self._stores, configuration)
        self._meters = RunMeters(
            self._stores,
            in_progress=lambda: len(self._children),
            queued=self._refreshing._pool._work_queue.qsize,
        )

    @property
    def registry(self) -> CollectorRegistry:
        """The metrics of the runs of this process."""
        return self._meters.registry

    def prepare(self, tenants: Sequence[str] | None = None) -> None:
        """Bring the control databases to this version's schema.

        Raises:
            SchemaError: one of them is ahead of this version, or its history is broken.
            StorageError: one of them cannot be used.
        """
        for name in tenants if tenants is not None else self._stores:
            self._stores[name].control.upgrade()

    def start(self) -> None:
        """Forget suspensions, and run every tenant now and then periodically, where the configuration says so.

        A tenant whose database cannot be reached now is tried again with every run.

        Raises:
            SchemaError: a control database is ahead of this version, or its history is broken.
        """
        for name in self._stores:
            try:
                self.prepare([name])
                self._suspensions.forget(name)
            except SchemaError:
                raise
            except StorageError as error:
                log.error("tenant %s: %s", name, error)
        features = self._configuration.features
        if not features.enable_periodic_refresh:
            return
        self._scheduler = BackgroundScheduler(
            executors={"default": self._refreshing},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        for name in self._stores:
            self._scheduler.add_job(
                self._refresh,
                "interval",
                args=[name],
                id=name,
                seconds=features.refresh_interval,
                next_run_time=utc_now(),
            )
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # a skipped run is no news: one is in progress
        self._scheduler.start()

    def stop(self) -> None:
        """Stop every run at its next safe place, and wait for their end."""
        self._stopping.set()
        with self._lock:
            children = list(self._children)
        for child in children:
            child.stop()
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=True)
            self._scheduler = None
        self._triggered.shutdown(wait=True)
        for store in self._stores.values():
            store.close()

    def trigger(self, tenant_name: str, request: RunRequest) -> None:
        """Start a run; returns when the lease is taken and the run is under way.

        Raises:
            TenantSuspended: the tenant was suspended.
            LeaseHeld: a run is in progress.
            NoRunner: the engine is stopping.
            StorageError: the tenant's storage cannot be used.
        """
        if self._stopping.is_set():
            raise NoRunner("the service is stopping")
        if reason := self._suspensions.reason(tenant_name):
            raise TenantSuspended(f"Tenant {tenant_name} is suspended: {reason}", tenant=tenant_name)
        self.prepare([tenant_name])
        lease = self._acquire(tenant_name)
        self._triggered.submit(self._run_logged, self._configuration.tenants[tenant_name], lease, request)

    def run_once(self, tenants: Sequence[str], request: RunRequest) -> list[RunResult]:
        """One run of each of the tenants, several at the same time; their results in the same order.

        Raises:
            SchemaError: a control database is ahead of this version, or its history is broken.
        """
        with ThreadPoolExecutor(self._configuration.features.max_parallel_tenants) as pool:
            return list(pool.map(lambda name: self._run_now(name, request), tenants))

    def _run_now(self, name: str, request: RunRequest) -> RunResult:
        try:
            self.prepare([name])
            lease = self._acquire(name)
        except SchemaError:
            raise
        except StorageError as error:
            return RunResult(name, Outcome.FAILED, errors=(str(error),), completed_at=utc_now())
        return self._run(self._configuration.tenants[name], lease, request)

    def _refresh(self, name: str) -> None:
        """One periodic run, unless there is a reason not to."""
        if self._stopping.is_set() or self._suspensions.reason(name):
            return
        tenant, store = self._configuration.tenants[name], self._stores[name]
        try:
            store.control.upgrade()
            if _ran_lately(tenant, store):
                return
            lease = self._acquire(name)
        except LeaseHeld:
            self._try_again_soon(name)
            return
        except StorageError as error:
            log.error("tenant %s: %s", name, error)
            self._suspensions.count_storage_failure(name, str(error))
            return
        self._run_logged(tenant, lease, RunRequest())

    def _try_again_soon(self, name: str) -> None:
        """Another process works on the tenant. Should it die, its work is taken up when its lease has expired."""
        if self._scheduler is not None:
            self._scheduler.add_job(
                self._refresh,
                "date",
                args=[name],
                id=f"{name} again",
                run_date=utc_now() + EXPIRY,
                replace_existing=True,
            )

    def _acquire(self, name: str) -> Lease:
        try:
            return acquire(self._stores[name].control, Owner.this_process())
        except LeaseHeld:
            raise LeaseHeld(f"Pipeline is already running for tenant {name}") from None

    def _run_logged(self, tenant: Tenant, lease: Lease, request: RunRequest) -> None:
        """A run of which nobody awaits the result: at the edge of its thread, every failure is logged."""
        try:
            self._run(tenant, lease, request)
        except Exception:
            log.exception("tenant %s: the run could not be done", tenant.name)

    def _run(self, tenant: Tenant, lease: Lease, request: RunRequest) -> RunResult:
        with log_context(tenant=tenant.name, run=lease.epoch):
            return self._run_in_child(tenant, lease, request)

    def _run_in_child(self, tenant: Tenant, lease: Lease, request: RunRequest) -> RunResult:
        configuration = self._configuration
        assignment = Assignment(tenant, request, lease.epoch, configuration.logging, configuration.secrets())
        self._meters.begin(tenant.name)
        child = RunningChild(assignment)
        with self._lock:
            self._children.add(child)
        try:
            if self._stopping.is_set():
                child.stop()
            result = child.wait(self._hear, tenant.settings.tenant_execution_timeout_seconds)
        finally:
            with self._lock:
                self._children.discard(child)
        self._meters.end(result)
        self._settle(tenant.name, lease, result)
        _log_result(result)
        self._suspensions.announce(tenant.name)
        return result

    def _hear(self, progress: Progress) -> None:
        self._meters.hear(progress)
        self._listener(progress)

    def _settle(self, name: str, lease: Lease, result: RunResult) -> None:
        """Record the end of a run whose process could not do so itself, and free the tenant."""
        try:
            with self._stores[name].control.write() as connection:
                error = result.errors[0] if result.errors else ""
                runs.close_open_run(connection, lease.epoch, outcome=result.outcome, error=error)
            lease.release()
        except ChargebackError as error:
            log.error("tenant %s: the end of the run could not be recorded: %s", name, error)


class Suspensions:
    """Which tenants are suspended: by their control database, or, when that is the cause, by memory."""

    def __init__(self, stores: dict[str, TenantStore], configuration: Configuration) -> None:
        self._stores = stores
        self._configuration = configuration
        self._lock = threading.Lock()
        self._storage_failures: dict[str, int] = {}
        self._in_memory: dict[str, str] = {}
        self._announced: set[str] = set()

    def forget(self, name: str) -> None:
        """A worker starts: the tenant is active again."""
        with self._stores[name].control.write() as connection:
            runs.clear_suspension(connection)

    def reason(self, name: str) -> str | None:
        """Why the tenant is suspended, or none."""
        if name in self._in_memory:
            return self._in_memory[name]
        try:
            with self._stores[name].control.read() as connection:
                return runs.suspended_because(connection)
        except StorageError:
            return None  # not known to be suspended; the run itself will meet the same trouble and count it

    def count_storage_failure(self, name: str, reason: str) -> None:
        """One more run that could not even begin because of the tenant's storage."""
        with self._lock:
            failures = self._storage_failures[name] = self._storage_failures.get(name, 0) + 1
            if failures >= self._configuration.tenants[name].settings.gather_failure_threshold:
                self._in_memory[name] = reason
        if name in self._in_memory:
            self.announce(name)

    def announce(self, name: str) -> None:
        """After a run: log the alert of a tenant that has just been suspended, and of the engine that has nobody
        left."""
        if self.reason(name) is None:
            self._storage_failures.pop(name, None)  # the run could begin
            return
        with self._lock:
            if name in self._announced:
                return
            self._announced.add(name)
            log.critical("ALERT: Tenant %s has been permanently suspended", name)
            if self._announced == self._stores.keys():
                log.critical("ALERT: All %d tenant(s) have been permanently suspended", len(self._stores))


def _ran_lately(tenant: Tenant, store: TenantStore) -> bool:
    """Whether a run ended by itself less than ``min_refresh_gap_seconds`` ago."""
    gap = timedelta(seconds=tenant.plugin_settings.min_refresh_gap_seconds)
    with store.control.read() as connection:
        ended = runs.last_finished(connection)
    return not has_passed(gap, ended)


def _log_result(result: RunResult) -> None:
    if result.outcome is Outcome.COMPLETED:
        log.info(
            "Tenant %s: gathered=%d, pending=%d, calculated=%d, rows=%d",
            result.tenant,
            result.dates_gathered,
            result.dates_pending,
            result.dates_calculated,
            result.chargeback_rows_written,
        )
    elif result.outcome is Outcome.COMPLETED_WITH_ERRORS:
        log.warning("Tenant %s completed with errors: %s", result.tenant, list(result.errors))
    else:
        log.error("Tenant %s: the run %s: %s", result.tenant, result.outcome.replace("_", " "), list(result.errors))
