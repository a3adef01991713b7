"""The days to calculate: those that are due or requested, and those whose evidence is more complete now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chargeback.errors import DamagedFacts
from chargeback.pipeline.run_context import EVERYTHING, RunContext
from chargeback.store.control import days as day_states
from chargeback.store.control.days import EVIDENCE_VERSION, METRICS, DayState
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, FactTables, read_day


@dataclass(frozen=True, slots=True)
class DueDay:
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
        """Return the UTC day."""
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


def due_days(run: RunContext) -> list[DueDay]:
    """Return the days to calculate, oldest first."""
    with run.store.control.read() as connection:
        known = day_states.read_days(connection)
    tasks = [
        DueDay(
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


def _may_improve(run: RunContext, task: DueDay) -> bool:
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
