"""Calculate every day that is gathered, but not calculated, oldest first. An error affects only its own day.

Days that were calculated from incomplete evidence are recalculated automatically once the missing evidence is
available; until then they do not change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from chargeback.allocation.day import CalculatedDay
from chargeback.allocation.policies import Policy, policies_hash
from chargeback.ecosystems.contract import Gatherer
from chargeback.errors import AllocationError, DamagedFacts, StorageError
from chargeback.logs import log_context
from chargeback.model.inventory import Identity
from chargeback.model.usage import USAGE
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, UsageRequest, load_stored
from chargeback.pipeline.partials import PartialsWriter
from chargeback.pipeline.revise import DayReviser, Revised
from chargeback.pipeline.run_context import EVERYTHING, RunContext, describe_days
from chargeback.pipeline.run_messages import Stage
from chargeback.recompute.days import DayRecomputer
from chargeback.store.control import days as day_states
from chargeback.store.control import inventory as inventory_store
from chargeback.store.control.days import EVIDENCE_VERSION, METRICS, DayState, listing
from chargeback.store.control.policies import record_policies
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    USAGE_TABLE,
    FactTables,
    read_day,
)
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.revised import REVISED_CHARGEBACKS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    """A day to calculate.

    Attributes:
        is_requested: the run's request recalculates it.
        is_covered: its stored evidence, if any, covers all billed resources.
        is_listed: types that could not be listed when it was calculated can be listed now.
        is_outdated: its evidence was stored by an earlier version.
    """

    state: DayState
    is_requested: bool = False
    is_covered: bool = True
    is_listed: bool = False
    is_outdated: bool = False

    @property
    def day(self) -> date:
        return self.state.tracking_date

    @property
    def is_optional(self) -> bool:
        """Return whether the day is already calculated, and only recalculated if the evidence is more complete."""
        return not (self.state.is_due or self.is_requested)

    @property
    def has_evidence(self) -> bool:
        """Return whether the stored evidence is sufficient to calculate the day."""
        return self.state.has_evidence and self.is_covered

    @property
    def use_stored(self) -> bool:
        """Return whether stored usage is sufficient, without a query of the metrics source."""
        return self.has_evidence and not (self.is_requested or self.is_outdated)

    @property
    def use_stored_members(self) -> bool:
        """Return whether the stored members are as complete as the inventory allows."""
        return self.use_stored and not self.state.missing_listings


def calculate(run: RunContext, gatherer: Gatherer) -> None:
    """Calculate the days that are due or requested, and those whose evidence is more complete now."""
    tasks = _tasks(run)
    run.record.dates_pending = sum(not task.is_optional for task in tasks)
    if not tasks:
        return
    run.enter(Stage.CALCULATING, tasks[0].day, total=len(tasks))
    calculation = _Calculation(run, gatherer)
    replace = run.request.recalculate and run.request.accept_less
    wanted = [UsageRequest(task.day, task.use_stored, replace and task.is_requested) for task in tasks]
    try:
        with calculation.fetcher.fetching(wanted) as usages:
            for number, (task, usage) in enumerate(zip(tasks, usages, strict=True), start=1):
                run.check()
                with log_context(date=task.day), run.catch_day_errors(task.day):
                    calculation.attempt(task, usage)
                run.enter(Stage.CALCULATING, task.day, number, len(tasks))
    finally:
        calculation.close()


def _tasks(run: RunContext) -> list[_Task]:
    with run.store.control.read() as connection:
        known = day_states.read_days(connection)
    tasks = [
        _Task(
            state,
            is_requested=run.request.recalculate,
            is_covered=not state.is_due or _is_covered(run.store.facts, state),
            is_listed=_can_be_listed(run, state),
            is_outdated=state.evidence_version < EVIDENCE_VERSION and state.has_evidence,
        )
        for state in known
        if state.billing_gathered and state.resources_gathered and run.covers(state.tracking_date)
    ]
    return [task for task in tasks if not task.is_optional or _may_improve(run, task)]


def _may_improve(run: RunContext, task: _Task) -> bool:
    is_asked_for = task.is_outdated and task.day in run.window
    return METRICS in task.state.incomplete or task.is_listed or is_asked_for


def _can_be_listed(run: RunContext, state: DayState) -> bool:
    """Return whether all types that could not be listed when the day was calculated can be listed now."""
    unlisted, missing = run.record.unlisted, state.missing_listings
    return bool(missing) and EVERYTHING not in unlisted and unlisted.keys().isdisjoint(missing)


def _is_covered(facts: FactTables, state: DayState) -> bool:
    """Return whether the day was measured for every billed resource; resources that were charged before were
    measured."""
    if not state.has_evidence or state.gathered_fingerprint == state.calculated_fingerprint:
        return True
    try:
        billed, charged = (
            set(read_day(facts, name, state.tracking_date)["resource_id"].to_pylist())
            for name in (BILLING_TABLE, CHARGEBACKS_TABLE)
        )
    except DamagedFacts:
        return False
    return billed <= charged


class _Calculation:
    """The calculation stage of one run."""

    def __init__(self, run: RunContext, gatherer: Gatherer) -> None:
        self._run = run
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

    def attempt(self, task: _Task, usage: DayUsage) -> None:
        """Calculate one day, or record why it cannot be."""
        try:
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
            self._calculate(task, usage, usage.table, {METRICS: None})
        except (AllocationError, StorageError) as error:
            if not isinstance(error, AllocationError) and error.retryable:
                raise
            self._record_error(task.day, str(error))

    def _without_metrics(self, task: _Task, usage: DayUsage) -> None:
        """Handle unavailable metrics: use the stored usage if it is sufficient. Otherwise wait for some runs, then
        calculate the day without metrics."""
        stored = usage.stored if usage.stored is not None else USAGE.empty_table()
        if task.has_evidence and usage.stored is not None:
            if task.is_requested:
                self._run.record_error(
                    f"measured before, but not again: {usage.error}; the stored measurements are kept", task.day
                )
            if not task.is_optional or task.is_listed:
                self._calculate(task, usage, stored, {})
        elif task.state.is_due:
            self._wait(task, usage, stored)
        elif task.is_listed:
            self._calculate(task, usage, stored, {METRICS: task.state.incomplete.get(METRICS, str(usage.error))})
        elif task.is_requested:
            self._run.record_error(
                f"metrics still unavailable, the previous calculation is kept: {usage.error}", task.day
            )

    def _wait(self, task: _Task, usage: DayUsage, stored: pa.Table) -> None:
        """Count a run in which the metrics were unavailable; after the last attempt, calculate the day and mark it."""
        attempts = task.state.failed_attempts + 1
        if attempts < self._run.tenant.settings.allocation_retry_limit:
            self._record_error(task.day, f"metrics unavailable: {usage.error}", failed_attempts=attempts)
            return
        self._run.record_error(f"calculated without metrics after {attempts} failed attempts: {usage.error}", task.day)
        self._calculate(task, usage, stored, {METRICS: str(usage.error)})

    def _record_error(self, day: date, error: str, **changes: int) -> None:
        self._run.record_error(error, day)
        with self._run.lease.write() as connection:
            day_states.save_day(connection, day, error=error, **changes)

    def _calculate(self, task: _Task, usage: DayUsage, measured: pa.Table, lacks: Mapping[str, str | None]) -> None:
        """Calculate a day from ``measured``; ``lacks`` is the evidence that is missing now, or no longer missing."""
        facts, day = self._run.store.facts, task.day
        use_stored = task.use_stored_members and not usage.is_new
        members = load_stored(facts, MEMBERS_TABLE, day) if use_stored else None
        available = {**task.state.incomplete, **lacks}.get(METRICS) is None
        evidence = self._recomputer.evidence(task.state, measured, members, metrics_available=available)
        if members is None:
            lacks = {**lacks, **self._missing_listings(task)}
        calculated = self._recomputer.calculate(evidence)
        self._warn_of_unknown(calculated.unknown_types)
        new = {CHARGEBACKS_TABLE: calculated.rows}
        if usage.is_new:
            new[USAGE_TABLE] = measured
        if members is None:
            new[MEMBERS_TABLE] = evidence.members
        revised = self._write(task, calculated, new)
        self._record(task, revised.number, calculated.rows.num_rows, lacks, is_fetched=usage.is_fetched)

    def _missing_listings(self, task: _Task) -> dict[str, str | None]:
        """Return the types that could not be listed in this run: their owners may be outdated."""
        missing: dict[str, str | None] = {listing(kind): None for kind in task.state.missing_listings}
        for kind, reason in self._run.record.unlisted.items():
            missing[listing(kind)] = reason
            self._run.record_error(
                f"calculated with the last known {kind}; recalculated once it can be listed", task.day
            )
        return missing

    def _write(self, task: _Task, calculated: CalculatedDay, new: Mapping[str, pa.Table]) -> Revised:
        """Write the rows of a day and its new evidence, after adding the charged identities to the inventory."""
        run, rows = self._run, calculated.rows
        charged = set(rows["identity_id"].unique().to_pylist()) - self._identities
        if charged:
            found = [Identity(identity_id, self._identity_type) for identity_id in sorted(charged)]
            with run.lease.write() as connection:
                inventory_store.ensure_known(connection, run.now(), charged=found)
            self._identities |= charged
        self._dimensions.register(calculated.dimensions)
        self._record_policies(calculated.policies)
        revised = self._reviser.replace(
            task.state, new, policies_hash=policies_hash(calculated.policies), is_requested=task.is_requested
        )
        if revised.is_new:
            self._partials.day_written(task.day)
        if revised.is_new or not task.is_optional:
            run.record.dates_calculated += 1
            run.record.chargeback_rows_written += rows.num_rows
        return revised

    def _record_policies(self, used: Mapping[str, Policy]) -> None:
        """Record the text of policies that this run has not used before."""
        new = {name: policy for name, policy in used.items() if self._recorded.get(name) != policy.hash}
        if new:
            with self._run.lease.write() as connection:
                record_policies(connection, new, self._run.now())
            self._recorded |= {name: policy.hash for name, policy in new.items()}

    def _record(
        self, task: _Task, revision: int, rows: int, lacks: Mapping[str, str | None], *, is_fetched: bool
    ) -> None:
        state = task.state
        is_current = is_fetched or not state.has_evidence
        with self._run.lease.write() as connection:
            day_states.save_day(
                connection,
                task.day,
                chargeback_calculated=True,
                calculated_fingerprint=state.gathered_fingerprint,
                evidence_version=EVIDENCE_VERSION if is_current else state.evidence_version,
                failed_attempts=0,
                chargeback_rows=rows,
                revision=revision,
                error=None,
            )
            day_states.mark_incomplete(connection, task.day, lacks)

    def _warn_of_unknown(self, product_types: tuple[str, ...]) -> None:
        for product_type in product_types:
            if product_type not in self._warned:
                self._warned.add(product_type)
                log.warning(
                    "tenant %s: no policy knows the product type %s, its cost goes to UNALLOCATED",
                    self._run.tenant.name,
                    product_type,
                )
