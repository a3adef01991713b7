"""Calculate every day that is gathered, but not calculated, oldest first. An error affects only its own day.

Days that were calculated from incomplete evidence are recalculated automatically once the missing evidence is
available; until then they do not change.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow as pa
from sqlalchemy import Connection

from chargeback.allocation.policies import Policy, policies_hash
from chargeback.ecosystems.contract import Gatherer
from chargeback.errors import AllocationError, LeaseLost, StorageError
from chargeback.logs import log_context
from chargeback.model.inventory import Identity
from chargeback.model.usage import USAGE
from chargeback.pipeline.batches import Batch
from chargeback.pipeline.day_task import DayTask
from chargeback.pipeline.due_days import DueDay, due_days
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, UsageRequest, load_stored
from chargeback.pipeline.fleet import SubmittedDay, open_fleet
from chargeback.pipeline.partials import PartialsWriter
from chargeback.pipeline.revise import DayReviser, RevisedDay
from chargeback.pipeline.run_context import RunContext, describe_days
from chargeback.pipeline.run_messages import Stage
from chargeback.recompute.days import DayRecomputer
from chargeback.store.control import days as day_states
from chargeback.store.control import inventory as inventory_store
from chargeback.store.control.days import EVIDENCE_VERSION, METRICS, listing
from chargeback.store.control.policies import record_policies
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import (
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    USAGE_TABLE,
)
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS
from chargeback.store.queries.datasets import CHARGEBACKS

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.2


def calculate(run: RunContext, gatherer: Gatherer) -> None:
    """Calculate the days that are due or requested, and those whose evidence is more complete now."""
    tasks = due_days(run)
    run.record.dates_pending = sum(not task.is_optional for task in tasks)
    if not tasks:
        return
    run.enter(Stage.CALCULATING, tasks[0].day, total=len(tasks))
    calculation = _Calculation(run, gatherer, total=len(tasks))
    replace = run.request.recalculate and run.request.accept_less
    wanted = [UsageRequest(task.day, task.use_stored, replace and task.is_requested) for task in tasks]
    try:
        with calculation.open_fleet(), calculation.fetcher.fetching(wanted) as usages, calculation.batch:
            for task in tasks:
                run.check()
                calculation.wait(usages.wait)
                usage = next(usages)
                with log_context(date=task.day), run.catch_day_errors(task.day):
                    calculation.attempt(task, usage)
                calculation.collect()
            calculation.collect(everything=True)
    finally:
        calculation.close()


@dataclass(frozen=True, slots=True)
class _Submitted:
    """A day that is being calculated.

    Attributes:
        new_evidence: what is stored with its rows.
        lacks: the evidence that is missing now, or no longer missing.
        is_fetched: the metrics source was queried successfully.
    """

    task: DueDay
    work: SubmittedDay
    new_evidence: Mapping[str, pa.Table]
    lacks: Mapping[str, str | None]
    is_fetched: bool


@dataclass(frozen=True, slots=True)
class _NewDay:
    """A calculated day that is ready to be committed."""

    submitted: _Submitted
    revised: RevisedDay
    rows: int
    charged: frozenset[str]
    policies: Mapping[str, Policy]

    @property
    def task(self) -> DueDay:
        return self.submitted.task


class _Calculation:
    """The calculation stage of one run. Its days are committed in the batches of ``batch``."""

    def __init__(self, run: RunContext, gatherer: Gatherer, *, total: int) -> None:
        self._run = run
        self._total = total
        self._done = 0
        self._submitted: deque[_Submitted] = deque()
        tenant = run.tenant
        with run.store.control.read() as connection:
            inventory = inventory_store.read_inventory(connection)
        catalogue = tenant.ecosystem.tenant_catalogue(tenant.plugin_settings)
        self._recomputer = DayRecomputer(run.store.facts, tenant.ecosystem, catalogue, inventory)
        self._identities = {identity.identity_id for identity in inventory.identities}
        self._identity_type = tenant.ecosystem.capabilities.metrics_identity_type
        self._dimensions = DimensionRegister(run.store.facts, epoch=run.lease.epoch)
        self._partials = PartialsWriter(run.store.facts, CHARGEBACKS)
        self._reviser = DayReviser(run, REVISED_CHARGEBACKS)
        self._recorded: dict[str, str] = {}
        self._warned: set[str] = set()
        self._unproven: list[date] = []
        self.batch = Batch(self._commit)
        self.fetcher = UsageFetcher(
            gatherer,
            inventory,
            run.store.facts,
            workers=tenant.settings.metrics_prefetch_workers,
            resolve=self._recomputer.resolve,
        )

    def close(self) -> None:
        """Release the engine's memory, and log the days that could not be measured again."""
        self._recomputer.close()
        self._partials.close()
        if self._unproven:
            why = "measured by an earlier version and not verified: the metrics source has less data now"
            log.warning("tenant %s: %s", self._run.tenant.name, describe_days(self._unproven, why))

    @contextmanager
    def open_fleet(self) -> Iterator[None]:
        """Open what calculates the days.

        Raises:
            WorkersUnavailable: it cannot be reached.
        """
        with open_fleet(self._run.compute, lambda: self._recomputer.calculator) as self._fleet:
            yield

    def wait(self, is_ready: Callable[[float], bool]) -> None:
        """Wait until ``is_ready``, which waits for so many seconds, returns True. Commit the batch when its time is up.

        Raises:
            Stopped: the run was told to stop.
            LeaseLost: another process has taken over.
        """
        while not is_ready(min(_POLL_SECONDS, self.batch.seconds_left or _POLL_SECONDS)):
            if self._run.stop.is_set() or self._run.lease.lost.is_set():
                self._run.check()
            if self.batch.seconds_left == 0:
                self.batch.commit()

    def collect(self, *, everything: bool = False) -> None:
        """Take the days that are calculated, in the order in which they were submitted; wait for them if there are too
        many, or for ``everything``."""
        while self._submitted:
            next_day = self._submitted[0]
            if not (everything or next_day.work.done() or len(self._submitted) >= self._fleet.capacity):
                return
            self.wait(next_day.work.wait)
            self._submitted.popleft()
            with log_context(date=next_day.task.day), self._run.catch_day_errors(next_day.task.day):
                self._try(lambda: self._finish(next_day), next_day.task)  # noqa: B023
            self._show_done(next_day.task)

    def _show_done(self, task: DueDay) -> None:
        self._done += 1
        self._run.enter(Stage.CALCULATING, task.day, self._done, self._total)

    def _try(self, work: Callable[[], None], task: DueDay) -> None:
        """Do something for one day; record an error that concerns only this day."""
        try:
            work()
        except (AllocationError, StorageError) as error:
            if not isinstance(error, AllocationError) and error.retryable:
                raise
            self._run.record_day_errors(str(error), task.day)

    def attempt(self, task: DueDay, usage: DayUsage) -> None:
        """Begin to calculate one day, or record why it cannot be."""
        before = len(self._submitted)
        try:
            self._try(lambda: self._begin(task, usage), task)
        finally:
            if len(self._submitted) == before:
                self._show_done(task)

    def _begin(self, task: DueDay, usage: DayUsage) -> None:
        if usage.table is None:
            self._without_metrics(task, usage)
            return
        if usage.poorer and task.is_requested:
            what = ", ".join(usage.poorer)
            self._run.record_error(
                f"the metrics source has less {what} than before; the stored measurements are kept", task.day
            )
        elif usage.poorer and task.is_outdated:
            self._unproven.append(task.day)
        self._submit(task, usage, usage.table, {METRICS: None})

    def _without_metrics(self, task: DueDay, usage: DayUsage) -> None:
        """Handle unavailable metrics: use the stored usage if it is sufficient. Otherwise wait for some runs, then
        calculate the day without metrics."""
        stored = usage.stored if usage.stored is not None else USAGE.empty_table()
        if task.has_evidence and usage.stored is not None:
            if task.is_requested:
                self._run.record_error(
                    f"measured before, but not again: {usage.error}; the stored measurements are kept", task.day
                )
            if not task.is_optional or task.is_listed:
                self._submit(task, usage, stored, {})
        elif task.state.is_due:
            self._wait(task, usage, stored)
        elif task.is_listed:
            self._submit(task, usage, stored, {METRICS: task.state.incomplete.get(METRICS, str(usage.error))})
        elif task.is_requested:
            self._run.record_error(
                f"metrics still unavailable, the previous calculation is kept: {usage.error}", task.day
            )

    def _wait(self, task: DueDay, usage: DayUsage, stored: pa.Table) -> None:
        """Count a run in which the metrics were unavailable; after the last attempt, calculate the day and mark it."""
        attempts = task.state.failed_attempts + 1
        if attempts < self._run.tenant.settings.allocation_retry_limit:
            self._run.record_day_errors(f"metrics unavailable: {usage.error}", task.day, failed_attempts=attempts)
            return
        self._run.record_error(f"calculated without metrics after {attempts} failed attempts: {usage.error}", task.day)
        self._submit(task, usage, stored, {METRICS: str(usage.error)})

    def _submit(self, task: DueDay, usage: DayUsage, measured: pa.Table, lacks: Mapping[str, str | None]) -> None:
        """Calculate a day from ``measured``; ``lacks`` is the evidence that is missing now, or no longer missing."""
        facts, day = self._run.store.facts, task.day
        use_stored = task.use_stored_members and not usage.is_new
        members = load_stored(facts, MEMBERS_TABLE, day) if use_stored else None
        available = {**task.state.incomplete, **lacks}.get(METRICS) is None
        evidence = self._recomputer.evidence(task.state, measured, members, metrics_available=available)
        if members is None:
            lacks = {**lacks, **self._missing_listings(task)}
        new_evidence = {USAGE_TABLE: measured} if usage.is_new else {}
        if members is None:
            new_evidence[MEMBERS_TABLE] = evidence.members
        work = self._fleet.submit(DayTask(facts.place, self._recomputer.catalogue, evidence))
        self._submitted.append(_Submitted(task, work, new_evidence, lacks, usage.is_fetched))

    def _finish(self, submitted: _Submitted) -> None:
        """Prepare a calculated day to be committed with the batch."""
        finished = submitted.work.result()
        self._warn_of_unknown(finished.unknown_types)
        self._dimensions.add(finished.dimensions)
        revised = self._reviser.prepare(
            submitted.task.state,
            finished.rows,
            submitted.new_evidence,
            policies_hash=policies_hash(finished.policies),
            is_requested=submitted.task.is_requested,
        )
        rows = finished.rows.rows
        self.batch.add(_NewDay(submitted, revised, rows, finished.charged, finished.policies), rows)

    def _missing_listings(self, task: DueDay) -> dict[str, str | None]:
        """Return the types that could not be listed in this run: their owners may be outdated."""
        missing: dict[str, str | None] = {listing(kind): None for kind in task.state.missing_listings}
        for kind, reason in self._run.record.unlisted.items():
            missing[listing(kind)] = reason
            self._run.record_error(
                f"calculated with the last known {kind}; recalculated once it can be listed", task.day
            )
        return missing

    def _commit(self, days: Sequence[_NewDay]) -> None:
        """Commit the days of a batch; an error that will not pass is one of each of them."""
        run, dates = self._run, [each.task.day for each in days]
        try:
            with run.catch_day_errors(*dates):
                written = [each.revised.prepared.get(CHARGEBACKS_TABLE) for each in days]
                self._fleet.check_files(run.store.facts, [each for each in written if each is not None])
                self._dimensions.write()
                self._reviser.commit(
                    [each.revised for each in days], lambda connection: self._record_charged(connection, days)
                )
                with run.lease.write() as connection:
                    for each in days:
                        self._record(connection, each)
                for each in days:
                    self._count(each)
        except StorageError as error:
            if isinstance(error, LeaseLost) or error.retryable:
                raise
            run.record_day_errors(str(error), *dates)

    def _record_charged(self, connection: Connection, days: Sequence[_NewDay]) -> None:
        """Record what rows refer to before they are there: the charged identities, and the text of policies."""
        new = {name: each for day in days for name, each in day.policies.items()}
        if new := {name: policy for name, policy in new.items() if self._recorded.get(name) != policy.hash}:
            record_policies(connection, new, self._run.now())
        charged = frozenset().union(*(day.charged for day in days)) - self._identities
        if charged:
            found = [Identity(identity_id, self._identity_type) for identity_id in sorted(charged)]
            inventory_store.ensure_known(connection, self._run.now(), charged=found)

    def _record(self, connection: Connection, new: _NewDay) -> None:
        state = new.task.state
        is_current = new.submitted.is_fetched or not state.has_evidence
        self._reviser.confirm(connection, new.revised)
        day_states.save_day(
            connection,
            new.task.day,
            chargeback_calculated=True,
            calculated_fingerprint=state.gathered_fingerprint,
            evidence_version=EVIDENCE_VERSION if is_current else state.evidence_version,
            failed_attempts=0,
            chargeback_rows=new.rows,
            revision=new.revised.revision.revision,
            error=None,
        )
        day_states.mark_incomplete(connection, new.task.day, new.submitted.lacks)

    def _count(self, new: _NewDay) -> None:
        self._identities |= new.charged
        self._recorded |= {name: policy.hash for name, policy in new.policies.items()}
        if new.revised.is_new:
            self._partials.day_written(new.task.day)
        if new.revised.is_new or not new.task.is_optional:
            self._run.record.dates_calculated += 1
            self._run.record.chargeback_rows_written += new.rows

    def _warn_of_unknown(self, product_types: tuple[str, ...]) -> None:
        for product_type in product_types:
            if product_type not in self._warned:
                self._warned.add(product_type)
                log.warning(
                    "tenant %s: no policy knows the product type %s, its cost goes to UNALLOCATED",
                    self._run.tenant.name,
                    product_type,
                )
