"""Calculate: every day that is gathered and not calculated, oldest first. One bad day is its own error."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.allocation.members import Membership
from chargeback.ecosystems.contract import Gatherer
from chargeback.errors import AllocationError, SourceError, StorageError
from chargeback.logs import log_context
from chargeback.model.days import utc_now
from chargeback.model.inventory import Identity
from chargeback.model.usage import USAGE
from chargeback.pipeline.events import Stage
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, members_of
from chargeback.pipeline.job import Job
from chargeback.store.control import days as states
from chargeback.store.control import inventory as shelves
from chargeback.store.control.days import DayState
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    USAGE_TABLE,
    read_day,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    """A day to calculate. An *optional* one is calculated already, without metrics: it is only worth doing again if
    they answer now. ``use_stored`` tells that its evidence is kept and still good."""

    state: DayState
    is_optional: bool
    use_stored: bool

    @property
    def day(self) -> date:
        return self.state.tracking_date


def calculate(job: Job, gatherer: Gatherer) -> None:
    """Calculate what is due, or what the request names."""
    tasks = _tasks(job)
    job.tally.dates_pending = sum(not task.is_optional for task in tasks)
    if not tasks:
        return
    job.enter(Stage.CALCULATING, tasks[0].day, total=len(tasks))
    calculation = _Calculation(job, gatherer)
    wanted = [(task.day, task.use_stored) for task in tasks]
    try:
        with calculation.fetcher.fetching(wanted) as usages:
            for number, (task, usage) in enumerate(zip(tasks, usages, strict=True), start=1):
                job.check()
                with log_context(date=task.day):
                    calculation.attempt(task, usage)
                job.enter(Stage.CALCULATING, task.day, number, len(tasks))
    finally:
        calculation.close()


def _tasks(job: Job) -> list[_Task]:
    request = job.request
    if request.recalculate:
        with job.store.control.read() as connection:
            named = [s.tracking_date for s in states.read_days(connection) if s.billing_gathered]
        with job.lease.write() as connection:
            states.require_calculation(connection, [day for day in named if job.wants(day)])
    with job.store.control.read() as connection:
        due = states.due_days(connection)
        without_metrics = set(states.days_without_metrics(connection, job.window))
        optional = [s for s in states.read_days(connection, job.window) if s.tracking_date in without_metrics]
    tasks = [
        _Task(state, is_optional=False, use_stored=_has_evidence(state) and not request.recalculate) for state in due
    ]
    tasks += [_Task(state, is_optional=True, use_stored=False) for state in optional]
    return sorted((task for task in tasks if job.wants(task.day)), key=lambda task: task.day)


def _has_evidence(state: DayState) -> bool:
    return state.calculated_fingerprint is not None and not state.metrics_unavailable


class _Calculation:
    """The calculation stage of one run."""

    def __init__(self, job: Job, gatherer: Gatherer) -> None:
        self._job = job
        tenant = job.tenant
        with job.store.control.read() as connection:
            inventory = shelves.read_inventory(connection)
        capabilities = tenant.ecosystem.capabilities
        self._membership = Membership(inventory, capabilities.payer_tiers)
        self._identities = {identity.identity_id for identity in inventory.identities}
        self._identity_type = capabilities.metrics_identity_type
        self._dimensions = DimensionRegister(job.store.facts, epoch=job.lease.epoch)
        self._calculator = DayCalculator(tenant.ecosystem.tenant_catalogue(tenant.plugin_settings))
        self._warned: set[str] = set()
        self.fetcher = UsageFetcher(
            gatherer, inventory, job.store.facts, workers=tenant.settings.metrics_prefetch_workers
        )

    def close(self) -> None:
        self._calculator.close()

    def attempt(self, task: _Task, usage: DayUsage) -> None:
        """Calculate one day, or record why it cannot be."""
        if usage.table is None and task.is_optional:
            return
        try:
            if usage.table is None:
                self._without_metrics(task, usage.error)
            else:
                self._calculate(task, usage.table, is_new=usage.is_new, metrics_available=True)
        except (AllocationError, StorageError) as error:
            if not isinstance(error, AllocationError) and error.retryable:
                raise
            self._record_error(task.day, str(error))

    def _without_metrics(self, task: _Task, error: SourceError | None) -> None:
        """One more run in which the metrics did not answer; in the last one the day goes on without them."""
        attempts = task.state.failed_attempts + 1
        if attempts >= self._job.tenant.settings.allocation_retry_limit:
            self._job.trouble(f"{task.day}: calculated without metrics after {attempts} failed attempts: {error}")
            self._calculate(task, USAGE.empty_table(), is_new=True, metrics_available=False)
            return
        self._record_error(task.day, f"metrics unavailable: {error}", failed_attempts=attempts)

    def _record_error(self, day: date, error: str, **changes: int) -> None:
        self._job.trouble(f"{day}: {error}")
        with self._job.lease.write() as connection:
            states.save_day(connection, day, error=error, **changes)

    def _calculate(self, task: _Task, usage: pa.Table, *, is_new: bool, metrics_available: bool) -> None:
        job, day = self._job, task.day
        facts, epoch = job.store.facts, job.lease.epoch
        billing = read_day(facts, BILLING_TABLE, day)
        if billing.num_rows != task.state.billing_lines:
            raise StorageError(f"{task.state.billing_lines} billing lines were stored, {billing.num_rows} are there")
        members, are_new = members_of(facts, self._membership, day, usage, billing, use_stored=task.use_stored)
        calculated = self._calculator.calculate(Evidence(day, billing, usage, members, metrics_available))
        self._warn_of_unknown(calculated.unknown_types)
        if task.state.chargeback_calculated:
            with job.lease.write() as connection:
                states.save_day(connection, day, chargeback_calculated=False)
        if is_new:
            facts.replace_day(USAGE_TABLE, day, usage, epoch=epoch)
        if are_new:
            facts.replace_day(MEMBERS_TABLE, day, members, epoch=epoch)
        self._dimensions.register(calculated.dimensions)
        facts.replace_day(CHARGEBACKS_TABLE, day, calculated.rows, epoch=epoch)
        self._record(task, calculated.rows, metrics_available=metrics_available)

    def _record(self, task: _Task, rows: pa.Table, *, metrics_available: bool) -> None:
        job = self._job
        charged = set(rows["identity_id"].unique().to_pylist()) - self._identities
        with job.lease.write() as connection:
            if charged:
                found = [Identity(identity_id, self._identity_type) for identity_id in sorted(charged)]
                shelves.ensure_known(connection, utc_now(), charged=found)
            states.save_day(
                connection,
                task.day,
                chargeback_calculated=True,
                calculated_fingerprint=task.state.gathered_fingerprint,
                metrics_unavailable=not metrics_available,
                failed_attempts=0,
                chargeback_rows=rows.num_rows,
                error=None,
            )
        self._identities |= charged
        job.tally.dates_calculated += 1
        job.tally.chargeback_rows_written += rows.num_rows

    def _warn_of_unknown(self, product_types: tuple[str, ...]) -> None:
        for product_type in product_types:
            if product_type not in self._warned:
                self._warned.add(product_type)
                log.warning(
                    "tenant %s: no policy knows the product type %s, its cost goes to UNALLOCATED",
                    self._job.tenant.name,
                    product_type,
                )
