"""Chargebacks: calculate every gathered day that is not yet calculated, oldest first.

Days that were calculated from incomplete evidence are recalculated automatically once the missing evidence is
available; until then they do not change.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime

import pyarrow as pa
from sqlalchemy import Connection

from chargeback.ecosystems.contract import Gatherer
from chargeback.errors import AllocationError, DamagedFacts, StorageError
from chargeback.model.inventory import Identity
from chargeback.model.usage import USAGE
from chargeback.pipeline.day_task import DayTask, FinishedDay
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, load_stored
from chargeback.pipeline.fleet import Fleet, open_fleet
from chargeback.pipeline.run_context import EVERYTHING, RunContext, describe_days
from chargeback.pipeline.run_messages import Stage
from chargeback.pipeline.stage import DayStage, Derivation, DueDay, NewDay, StartedDay
from chargeback.recompute.days import DayRecomputer
from chargeback.store.control import days as day_states
from chargeback.store.control import inventory as inventory_store
from chargeback.store.control.days import EVIDENCE_VERSION, METRICS, NOT_MEASURED, DayDataset, DayState, listing
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
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS

log = logging.getLogger(__name__)


def calculate(run: RunContext, gatherer: Gatherer) -> None:
    """Calculate the days that are due or requested, and those whose evidence is more complete now."""
    due = due_days(run)
    run.record.dates_pending = sum(not each.is_optional for each in due)
    if due:
        run.enter(Stage.CALCULATING, due[0].day, total=len(due))
        DayStage(run, ChargebackDerivation(run, gatherer)).process(due)


def due_days(run: RunContext) -> list[DueDay]:
    """Return the days to calculate, oldest first."""
    with run.store.control.read() as connection:
        known = day_states.read_days(connection)
    days = [
        DueDay(
            state,
            is_due=state.is_due,
            is_requested=run.request.recalculate,
            has_evidence=has_evidence and (not state.is_due or _is_covered(run.store.facts, state)),
            is_outdated=state.evidence_version < EVIDENCE_VERSION and has_evidence,
            is_listed=_can_be_listed(run, state),
        )
        for state in known
        for has_evidence in [state.has_evidence(DayDataset.CHARGEBACKS)]
        if state.billing_gathered and state.resources_gathered and run.covers(state.tracking_date)
    ]
    return [each for each in days if not each.is_optional or _may_improve(run, each)]


def _may_improve(run: RunContext, due: DueDay) -> bool:
    is_asked_for = due.is_outdated and due.day in run.window
    return METRICS in due.state.incomplete or due.is_listed or is_asked_for


def _can_be_listed(run: RunContext, state: DayState) -> bool:
    """Return whether all types that could not be listed when the day was calculated can be listed now."""
    unlisted, missing = run.record.unlisted, state.missing_listings
    return bool(missing) and EVERYTHING not in unlisted and unlisted.keys().isdisjoint(missing)


def _is_covered(facts: FactTables, state: DayState) -> bool:
    """Return whether the day was measured for every billed resource; resources that were charged before were
    measured."""
    if state.gathered_fingerprint == state.chargebacks.fingerprint:
        return True
    try:
        billed, charged = (
            set(read_day(facts, name, state.tracking_date)["resource_id"].to_pylist())
            for name in (BILLING_TABLE, CHARGEBACKS_TABLE)
        )
    except DamagedFacts:
        return False
    return billed <= charged


class ChargebackDerivation(Derivation[FinishedDay]):
    """Calculates chargebacks from bill, usage and members, in this process or by the workers of a cluster."""

    stage = Stage.CALCULATING
    dataset = REVISED_CHARGEBACKS
    aggregates = (CHARGEBACKS, BILLING_LINES)
    not_again = "measured before, but not again"

    def __init__(self, run: RunContext, gatherer: Gatherer) -> None:
        self._run = run
        tenant = run.tenant
        with run.store.control.read() as connection:
            inventory = inventory_store.read_inventory(connection)
        self._recomputer = DayRecomputer(run.store.facts, tenant.ecosystem, tenant.catalogue, inventory)
        self._identities = {identity.identity_id for identity in inventory.identities}
        self._identity_type = tenant.ecosystem.capabilities.metrics_identity_type
        self._dimensions = DimensionRegister(run.store.facts)
        self._fleet: Fleet
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

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open what calculates the days; at the end, log the days that could not be measured again."""
        try:
            with open_fleet(self._run.compute, lambda: self._recomputer.calculator) as self._fleet:
                self.capacity = self._fleet.capacity
                yield
        finally:
            self._recomputer.close()
            if self._unproven:
                why = "measured by an earlier version and not verified: the metrics source has less data now"
                log.warning("tenant %s: %s", self._run.tenant.name, describe_days(self._unproven, why))

    def derive(
        self, due: DueDay, usage: DayUsage, measured: pa.Table | None, why: str | None
    ) -> StartedDay[FinishedDay]:
        """Submit the task that calculates the day. Without metrics, costs are split evenly or go to resources."""
        facts, day = self._run.store.facts, due.day
        if usage.poorer and due.is_outdated and not due.is_requested:
            self._unproven.append(day)
        used = USAGE.empty_table() if measured is None else measured
        # The stored members are as complete as the inventory allows.
        use_stored = due.use_stored and not due.state.missing_listings and not usage.is_new
        members = load_stored(facts, MEMBERS_TABLE, day) if use_stored else None
        evidence = self._recomputer.evidence(due.state, used, members, metrics_available=why is None)
        lacks = {METRICS: why}
        new_evidence = {USAGE_TABLE: used} if usage.is_new else {}
        if members is None:
            lacks |= self._missing_listings(due)
            new_evidence[MEMBERS_TABLE] = evidence.members
        work = self._fleet.submit(DayTask(facts.place, self._recomputer.catalogue, evidence, facts.control.owner))
        return StartedDay(due, work, new_evidence, lacks, is_fetched=usage.is_fetched, is_measured=True)

    def _missing_listings(self, due: DueDay) -> dict[str, str | None]:
        """Return the types that could not be listed in this run: their owners may be outdated."""
        missing: dict[str, str | None] = {listing(kind): None for kind in due.state.missing_listings}
        for kind, reason in self._run.record.unlisted.items():
            missing[listing(kind)] = reason
            self._run.record_error(
                f"calculated with the last known {kind}; recalculated once it can be listed", due.day
            )
        return missing

    def has_to_wait(self, due: DueDay, usage: DayUsage) -> bool:
        """Count the failure of the day; after the last attempt, it is calculated without metrics and marked."""
        attempts = due.state.failed_attempts + 1
        if attempts < self._run.tenant.settings.allocation_retry_limit:
            self._run.record_day_errors(f"{NOT_MEASURED}{usage.error}", due.day, failed_attempts=attempts)
            return True
        self._run.record_error(f"calculated without metrics after {attempts} failed attempts: {usage.error}", due.day)
        return False

    def record_failure(self, error: AllocationError | StorageError, *days: date) -> None:
        """Record the error, also in the states of the days."""
        self._run.record_day_errors(str(error), *days)

    def finish(self, started: StartedDay[FinishedDay], derived: FinishedDay) -> None:
        """Add the dimensions of the rows, and warn of product types without a policy, once for each."""
        for product_type in derived.unknown_types:
            if product_type not in self._warned:
                self._warned.add(product_type)
                log.warning(
                    "tenant %s: no policy knows the product type %s, its cost goes to UNALLOCATED",
                    self._run.tenant.name,
                    product_type,
                )
        self._dimensions.add(derived.dimensions)

    def check(self, days: Sequence[NewDay[FinishedDay]]) -> None:
        """Check that workers have written to the storage of the run, and write the dimensions of the rows."""
        written = [each.revised.contents.get(CHARGEBACKS_TABLE) for each in days]
        self._fleet.check_files(self._run.store.facts, [each for each in written if each is not None])
        self._dimensions.write()

    def record_references(self, connection: Connection, days: Sequence[NewDay[FinishedDay]], at: datetime) -> None:
        """Record the dimensions, the charged identities, and the text of policies."""
        self._dimensions.record(connection, at)
        used = {name: each for day in days for name, each in day.derived.policies.items()}
        if new := {name: policy for name, policy in used.items() if self._recorded.get(name) != policy.hash}:
            record_policies(connection, new, self._run.now())
        charged = frozenset().union(*(day.derived.charged for day in days)) - self._identities
        if charged:
            found = [Identity(identity_id, self._identity_type) for identity_id in sorted(charged)]
            inventory_store.ensure_known(connection, self._run.now(), charged=found)

    def publish(self, connection: Connection, day: NewDay[FinishedDay]) -> None:
        """Clear the error of the day, and record the version of the rules for its evidence."""
        state = day.due.state
        is_current = day.started.is_fetched or not state.has_evidence(DayDataset.CHARGEBACKS)
        day_states.save_day(
            connection,
            day.due.day,
            evidence_version=EVIDENCE_VERSION if is_current else state.evidence_version,
            failed_attempts=0,
            error=None,
        )

    def published(self, day: NewDay[FinishedDay]) -> None:
        """Count the day, and remember what is recorded of its rows."""
        self._dimensions.recorded()
        self._identities |= day.derived.charged
        self._recorded |= {name: policy.hash for name, policy in day.derived.policies.items()}
        if day.revised.is_new or not day.due.is_optional:
            self._run.record.dates_calculated += 1
            self._run.record.chargeback_rows_written += day.derived.rows.rows
