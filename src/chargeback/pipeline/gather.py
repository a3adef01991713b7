"""Gather: the inventory, and every day's bill of the window.

A day is written only when its fingerprint differs from what is stored. An answer without lines does not erase a day
that had some until the provider has said so in three runs. A bill that is made from measurements is measured once;
where a part of the day was not seen it is measured again, and the richer measurement stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

from sqlalchemy import Connection

from chargeback.ecosystems.contract import GatheredDay, Gatherer
from chargeback.errors import SourceError
from chargeback.logs import log_context
from chargeback.model.billing import BillingLine, billing_table, fingerprint
from chargeback.model.days import ONE_DAY, DayRange, has_passed
from chargeback.model.inventory import Inventory, ListedInventory, Resource, environments
from chargeback.pipeline.remeasure import richer_bill, unseen_of
from chargeback.pipeline.run_context import EVERYTHING, RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.store.control import days as states
from chargeback.store.control import inventory as shelves
from chargeback.store.control import runs
from chargeback.store.control.days import BILL, EVIDENCE_VERSION, DayState
from chargeback.store.facts.tables import BILLING_TABLE

log = logging.getLogger(__name__)

_OLD_DAYS = timedelta(days=35)
_OLD_DAYS_REST = timedelta(hours=24)
_EMPTY_ANSWERS_TO_BELIEVE = 3


def gather(job: RunContext, gatherer: Gatherer) -> None:
    """Bring inventory and billing up to date.

    Trouble of single days and of optional listings is recorded and survived; when the costs or a required listing
    cannot be had, the gathering has failed: that counts towards suspension.
    """
    job.enter(Stage.GATHERING, total=len(job.window))
    job.tally.unlisted = {EVERYTHING: "it was not had in this run"}
    try:
        listed = _gather_inventory(job, gatherer)
        _gather_billing(job, gatherer, listed.complete)
    except SourceError as error:
        job.record_error(f"gathering failed: {error}")
        job.tally.gathering_error = str(error)
        return
    if missing := sorted(listed.required & listed.failures.keys()):
        job.tally.gathering_error = f"{missing[0]}: {listed.failures[missing[0]]}"
        return
    with job.lease.write() as connection:
        states.mark_resources_gathered(connection)
        runs.reset_gather_failures(connection)


def _gather_inventory(job: RunContext, gatherer: Gatherer) -> ListedInventory:
    """Merge what is listed."""
    listed = gatherer.inventory()
    job.check()
    job.tally.unlisted = dict(listed.failures)
    for reason in sorted(set(listed.failures.values())):
        names = sorted(name for name, why in listed.failures.items() if why == reason)
        job.record_error(f"{', '.join(names)} could not be listed, the last known is used: {reason}")
    with job.lease.write() as connection:
        threshold = job.tenant.settings.zero_gather_deletion_threshold
        shelves.merge_listing(connection, listed, job.now(), empty_listings_to_delete=threshold)
        shelves.ensure_known(connection, job.now())
    return listed


def _gather_billing(job: RunContext, gatherer: Gatherer, complete: frozenset[str]) -> None:
    with job.store.control.read() as connection:
        known = {state.tracking_date: state for state in states.read_days(connection, job.window)}
        inventory = shelves.read_inventory(connection)
    shelf = _BillingDayWriter(job, known, inventory, complete)
    wanted = [day for day in job.window if _is_asked_for(job, known.get(day))]
    for number, gathered in enumerate(_answers(gatherer, wanted), start=1):
        with log_context(date=gathered.day), job.surviving(gathered.day):
            shelf.keep(gathered)
        job.report(Stage.GATHERING, gathered.day, number, len(wanted))
        job.check()


def _is_asked_for(job: RunContext, state: DayState | None) -> bool:
    """Recent days are asked for in every run, old ones once in 24 hours. A bill that is made from measurements is made
    once, if all of its day was seen: the metrics source only forgets."""
    if state is None or not state.billing_gathered or state.gathered_at is None:
        return True
    if job.tenant.ecosystem.capabilities.constructs_costs:
        if job.recalculates(state.tracking_date):
            return True
        is_outdated = state.evidence_version < EVIDENCE_VERSION and state.calculated_fingerprint is not None
        if BILL not in state.incomplete and not is_outdated:
            return False
    settled = job.today - timedelta(days=job.tenant.settings.cutoff_days) - _OLD_DAYS
    return state.tracking_date >= settled or has_passed(_OLD_DAYS_REST, state.gathered_at, job.now())


def _answers(gatherer: Gatherer, wanted: list[date]) -> Iterator[GatheredDay]:
    """The gathered days of every stretch of consecutive wanted days."""
    start = 0
    for position, day in enumerate(wanted):
        is_last = position + 1 == len(wanted)
        if is_last or wanted[position + 1] != day + ONE_DAY:
            yield from gatherer.billing(DayRange(wanted[start], day + ONE_DAY))
            start = position + 1


class _BillingDayWriter:
    """Keeps gathered days, one after the other. ``complete`` are the types that were just listed completely."""

    def __init__(
        self, job: RunContext, known: Mapping[date, DayState], inventory: Inventory, complete: frozenset[str]
    ) -> None:
        self._job = job
        self._known = known
        self._environments = environments(inventory.resources)
        self._resources = {resource.resource_id for resource in inventory.resources}
        self._complete = complete & {resource.resource_type for resource in inventory.resources}
        self._replaced: set[date] = set()

    def keep(self, gathered: GatheredDay) -> None:
        """Store the day if it is new or has changed, and say so in its state."""
        job, day = self._job, gathered.day
        state = self._known.get(day) or DayState(day)
        is_again = state.billing_gathered and job.tenant.ecosystem.capabilities.constructs_costs
        if gathered.error is not None:
            self._reject_day(day, gathered.error, is_again=is_again)
            return
        if is_again:
            gathered = self._richer(gathered)
        job.tally.dates_gathered += 1
        job.tally.lines += len(gathered.lines)
        if not gathered.lines and state.billing_lines:
            empty_answers = state.empty_answers + 1
            if empty_answers < _EMPTY_ANSWERS_TO_BELIEVE:
                self._defer_empty(state, empty_answers)
                return
        seen = fingerprint(gathered.lines)
        now = job.now()
        unseen, unseen_before = unseen_of(gathered.lines), state.incomplete.get(BILL)
        is_seen_better = unseen_before is not None and unseen != unseen_before
        if state.billing_gathered and seen == state.gathered_fingerprint and not is_seen_better:
            with job.lease.write() as connection:
                states.save_day(connection, day, gathered_at=now, empty_answers=0)
                states.mark_incomplete(connection, day, {BILL: unseen})
            return
        self._replace(state, gathered, seen, now)

    def _richer(self, gathered: GatheredDay) -> GatheredDay:
        """A bill that was measured once more, of which nothing is less than before, unless the request accepts that."""
        job, day = self._job, gathered.day
        if job.recalculates(day) and job.request.accept_less:
            return gathered
        found = richer_bill(job.store.facts, day, gathered.lines)
        if found.poorer:
            less = f"measured again with less than is stored ({'; '.join(found.poorer)}): the stored bill is kept"
            if job.recalculates(day):
                job.record_error(f"{less}; `--accept-less` takes what there is now", day)
            else:
                log.info("tenant %s: %s: %s", job.tenant.name, day, less)
        return GatheredDay(day, found.lines)

    def _replace(self, state: DayState, gathered: GatheredDay, seen: str, now: datetime) -> None:
        job, day = self._job, gathered.day
        constructs = job.tenant.ecosystem.capabilities.constructs_costs
        with job.lease.write() as connection:
            states.save_day(connection, day, billing_gathered=False, chargeback_calculated=False)
            self._add_billed_resources(gathered.lines, now, connection)
        self._replaced.add(day)
        table = billing_table(
            gathered.lines,
            ecosystem=job.store.ecosystem,
            tenant_id=job.store.tenant_id,
            environments=self._environments,
        )
        job.store.facts.replace_day(BILLING_TABLE, day, table, epoch=job.lease.epoch)
        with job.lease.write() as connection:
            states.save_day(
                connection,
                day,
                billing_gathered=True,
                gathered_fingerprint=seen,
                gathered_at=now,
                empty_answers=0,
                failed_attempts=0,
                billing_lines=len(gathered.lines),
                error=None,
                # What a bill was measured with was measured with it: usage is asked for once more, too.
                **({"evidence_version": 0} if constructs else {}),
            )
            states.mark_incomplete(connection, day, {BILL: unseen_of(gathered.lines)})
        if state.calculated_fingerprint is not None:
            log.info("tenant %s: the bill of %s has changed and is calculated again", job.tenant.name, day)

    def _add_billed_resources(self, lines: Sequence[BillingLine], now: datetime, connection: Connection) -> None:
        """A row in the inventory for every billed resource that no listing has ever named; it is gone already where
        its type was just listed completely."""
        new = {
            line.resource_id: Resource(
                line.resource_id,
                line.resource_type,
                line.resource_name,
                parent_id=line.environment_id,
                deleted_at=now if line.resource_type in self._complete else None,
            )
            for line in lines
            if line.resource_id not in self._resources
        }
        if new:
            shelves.ensure_known(connection, now, billed=new.values())
            self._resources |= new.keys()

    def _defer_empty(self, state: DayState, empty_answers: int) -> None:
        day = state.tracking_date
        self._job.record_error(
            f"the provider answered without lines ({empty_answers} of {_EMPTY_ANSWERS_TO_BELIEVE} times), "
            "the lines known are kept",
            day,
        )
        with self._job.lease.write() as connection:
            states.save_day(connection, day, gathered_at=self._job.now(), empty_answers=empty_answers)

    def _reject_day(self, day: date, problem: str, *, is_again: bool) -> None:
        """Note that a day cannot be trusted: what was stored of it stays. What this very run has stored of it is not to
        be trusted either, and is not calculated. That a day cannot be measured again by itself is no trouble."""
        if is_again and day not in self._replaced and not self._job.recalculates(day):
            log.info("tenant %s: %s is not measured again: %s", self._job.tenant.name, day, problem)
            with self._job.lease.write() as connection:
                states.save_day(connection, day, gathered_at=self._job.now())
            return
        self._job.record_error(problem, day)
        withdrawn = {"billing_gathered": False} if day in self._replaced else {}
        with self._job.lease.write() as connection:
            states.save_day(connection, day, error=problem, **withdrawn)
