"""Gather the inventory, and the bill of every day of the window.

A day is written only when its fingerprint differs from what is stored. A response without lines, or with fewer where
files may have been replaced by a part of them, does not erase stored lines of a day until the provider has returned it
in three runs. A bill constructed from metrics is measured once; if a part of the day is missing, it is measured again,
and the more complete measurement is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any

from chargeback.ecosystems.contract import GatheredDay, Gatherer
from chargeback.errors import SourceError
from chargeback.logs import log_context
from chargeback.model.billing import BillingLine, billing_table, fingerprint
from chargeback.model.days import ONE_DAY, DayRange, has_passed
from chargeback.model.inventory import Inventory, ListedInventory, Resource, environments
from chargeback.pipeline.bills import BilledDay, Others, TenantBills
from chargeback.pipeline.evidence import richer_bill, unmeasured_part
from chargeback.pipeline.run_context import EVERYTHING, RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.pipeline.stage import Batch
from chargeback.store.control import days as day_states
from chargeback.store.control import inventory as inventory_store
from chargeback.store.control import runs
from chargeback.store.control.catalogue import NewContent
from chargeback.store.control.days import BILL, EVIDENCE_VERSION, DayDataset, DayState
from chargeback.store.facts.tables import BILLING_TABLE

log = logging.getLogger(__name__)

_OLD_DAYS = timedelta(days=35)
_OLD_DAYS_REST = timedelta(hours=24)
_EMPTY_RESPONSES_ACCEPTED = 3


def gather(run: RunContext, gatherer: Gatherer, others: Others = MappingProxyType({})) -> None:
    """Bring inventory and billing up to date; ``others`` are the gatherers of additional bills.

    Errors of single days and of optional listings are recorded, and gathering continues. If costs or a required listing
    cannot be fetched, gathering fails, which counts towards suspension.
    """
    run.enter(Stage.GATHERING, total=len(run.window))
    run.record.unlisted = {EVERYTHING: "it was not fetched in this run"}
    try:
        listed = _gather_inventory(run, gatherer)
        _gather_billing(run, TenantBills(run, gatherer, others), listed.complete)
    except SourceError as error:
        run.record_error(f"{runs.GATHERING_FAILED}{error}")
        run.record.gathering_error = str(error)
        return
    if missing := sorted(listed.required & listed.failures.keys()):
        run.record.gathering_error = f"{missing[0]}: {listed.failures[missing[0]]}"
        return
    with run.lease.write() as connection:
        day_states.mark_resources_gathered(connection)
        runs.reset_gather_failures(connection)


def _gather_inventory(run: RunContext, gatherer: Gatherer) -> ListedInventory:
    """Merge the listed inventory."""
    listed = gatherer.inventory()
    run.check()
    run.record.unlisted = dict(listed.failures)
    fails = bool(listed.required & listed.failures.keys())
    consequence = runs.NOT_LISTED if fails else "could not be listed; the last known inventory is used: "
    for reason in sorted(set(listed.failures.values())):
        names = sorted(name for name, why in listed.failures.items() if why == reason)
        run.record_error(f"{', '.join(names)} {consequence}{reason}")
    with run.lease.write() as connection:
        threshold = run.tenant.settings.zero_gather_deletion_threshold
        inventory_store.merge_listing(connection, listed, run.now(), empty_listings_to_delete=threshold)
        inventory_store.ensure_known(connection, run.now())
    return listed


def _gather_billing(run: RunContext, bills: TenantBills, complete: frozenset[str]) -> None:
    with run.store.control.read() as connection:
        known = {state.tracking_date: state for state in day_states.read_days(connection, run.window)}
        inventory = inventory_store.read_inventory(connection)
    writer = _BillingDayWriter(run, known, inventory, complete)
    days = [day for day in run.window if _must_gather(run, known.get(day))]
    with writer.batch, writer.confirmed:
        for number, billed in enumerate(_gather_days(bills, days), start=1):
            with log_context(date=billed.gathered.day), run.catch_day_errors(billed.gathered.day):
                writer.store(billed)
            run.report(Stage.GATHERING, billed.gathered.day, number, len(days))
            run.check()


def _must_gather(run: RunContext, state: DayState | None) -> bool:
    """Return whether to fetch a day's bill: recent days in every run, old ones once in 24 hours. A bill constructed
    from metrics is measured once if the whole day was measured, because metrics only expire, unless additional bills
    may have changed."""
    if state is None or not state.billing_gathered or state.gathered_at is None:
        return True
    if run.tenant.ecosystem.capabilities.constructs_costs and not run.tenant.additional_bills:
        if run.recalculates(state.tracking_date):
            return True
        is_outdated = state.evidence_version < EVIDENCE_VERSION and state.chargebacks.fingerprint is not None
        if BILL not in state.incomplete and not is_outdated:
            return False
    settled = run.today - timedelta(days=run.tenant.settings.cutoff_days) - _OLD_DAYS
    return state.tracking_date >= settled or has_passed(_OLD_DAYS_REST, state.gathered_at, run.now())


def _gather_days(bills: TenantBills, days: list[date]) -> Iterator[BilledDay]:
    """Yield the gathered days of each run of consecutive days."""
    start = 0
    for position, day in enumerate(days):
        is_last = position + 1 == len(days)
        if is_last or days[position + 1] != day + ONE_DAY:
            yield from bills.days(DayRange(days[start], day + ONE_DAY))
            start = position + 1


@dataclass(frozen=True, slots=True)
class _NewBill:
    """A bill that is ready to be committed: its file, the changes of the day's state, and the resources that were never
    listed."""

    state: DayState
    content: NewContent
    changes: Mapping[str, Any]
    lacks: Mapping[str, str | None]
    resources: Mapping[str, Resource]


@dataclass(frozen=True, slots=True)
class _SameBill:
    """A bill that was gathered again at some time and is the stored one, and what it lacks."""

    day: date
    at: datetime
    lacks: Mapping[str, str | None]


class _BillingDayWriter:
    """Stores gathered days, in the batches of ``batch``, and that the others are unchanged, in those of ``confirmed``.
    ``complete`` are the types that were just listed completely."""

    def __init__(
        self, run: RunContext, known: Mapping[date, DayState], inventory: Inventory, complete: frozenset[str]
    ) -> None:
        self._run = run
        self._known = known
        self._environments = environments(inventory.resources)
        self._resources = {resource.resource_id for resource in inventory.resources}
        self._complete = complete & {resource.resource_type for resource in inventory.resources}
        self._replaced: set[date] = set()
        self.batch = Batch(self._commit)
        self.confirmed = Batch(self._confirm)

    def store(self, billed: BilledDay) -> None:
        """Store the day if it is new or has changed, and update its state."""
        run, gathered, day = self._run, billed.gathered, billed.gathered.day
        if day in self._replaced:  # its bill may be in the batch that is not committed yet
            self.batch.commit()
        state = self._known.get(day) or DayState(day)
        is_again = state.billing_gathered and run.tenant.ecosystem.capabilities.constructs_costs
        if gathered.error is not None:
            self._reject_day(day, gathered.error, is_again=is_again)
            return
        if is_again:
            gathered = self._richer(gathered)
        run.record.dates_gathered += 1
        run.record.lines += len(gathered.lines)
        if self._may_be_incomplete(state, gathered):
            times = state.empty_answers + 1
            if times < _EMPTY_RESPONSES_ACCEPTED:
                self._defer(state, gathered, times)
                return
        seen = fingerprint(gathered.lines)
        now = run.now()
        unseen, unseen_before = unmeasured_part(gathered.lines), state.incomplete.get(BILL)
        is_seen_better = unseen_before is not None and unseen != unseen_before
        if state.billing_gathered and seen == state.gathered_fingerprint and not is_seen_better:
            self.confirmed.add(_SameBill(day, now, {BILL: unseen, **billed.held}), rows=0)
            return
        self._replace(state, BilledDay(gathered, billed.held), seen, now)

    def _richer(self, gathered: GatheredDay) -> GatheredDay:
        """Return the newly measured bill, in which no product type has less than before unless the request accepts
        less."""
        run, day = self._run, gathered.day
        if run.recalculates(day) and run.request.accept_less:
            return gathered
        found = richer_bill(run.store.facts, day, gathered.lines)
        if found.poorer:
            less = f"measured again with less than is stored ({'; '.join(found.poorer)}): the stored bill is kept"
            if run.recalculates(day):
                run.record_error(f"{less}; `--accept-less` accepts the smaller values", day)
            else:
                log.info("tenant %s: %s: %s", run.tenant.name, day, less)
        return GatheredDay(day, found.lines)

    def _replace(self, state: DayState, billed: BilledDay, seen: str, now: datetime) -> None:
        run, gathered, day = self._run, billed.gathered, billed.gathered.day
        constructs = run.tenant.ecosystem.capabilities.constructs_costs
        table = billing_table(
            gathered.lines,
            ecosystem=run.store.ecosystem,
            tenant_id=run.store.tenant_id,
            environments=self._environments,
        )
        changes = {
            "gathered_fingerprint": seen,
            "gathered_at": now,
            "billing_lines": len(gathered.lines),
            # The usage of a measured bill was measured with it, so it is fetched again too.
            **({"evidence_version": 0} if constructs else {}),
        }
        content = run.store.facts.prepare_day(BILLING_TABLE, day, table)
        resources = self._unlisted_resources(gathered.lines, now)
        self._replaced.add(day)
        bill = _NewBill(state, content, changes, {BILL: unmeasured_part(gathered.lines), **billed.held}, resources)
        self.batch.add(bill, table.num_rows)

    def _commit(self, bills: Sequence[_NewBill]) -> None:
        """Store the bills of a batch."""
        run = self._run
        days = [bill.content.day for bill in bills]
        unlisted: dict[str, Resource] = {}
        for bill in bills:
            unlisted = {key: each for key, each in bill.resources.items() if key not in self._resources} | unlisted
        with run.catch_day_errors(*days):
            with run.store.facts.commit(run.lease, run.now) as (connection, at):
                run.store.facts.replace(connection, [bill.content for bill in bills], at)
                for day, bill in zip(days, bills, strict=True):
                    day_states.save_day(
                        connection,
                        day,
                        **{"billing_gathered": True, "empty_answers": 0, "failed_attempts": 0, "error": None},
                        **bill.changes,
                    )
                    day_states.mark_incomplete(connection, day, bill.lacks)
                day_states.mark_due(connection, DayDataset.CHARGEBACKS, days)
                if unlisted:
                    inventory_store.ensure_known(connection, run.now(), billed=unlisted.values())
            self._resources |= unlisted.keys()
            for day, bill in zip(days, bills, strict=True):
                if bill.state.chargebacks.fingerprint is not None:
                    log.info("tenant %s: the bill of %s has changed; the day is recalculated", run.tenant.name, day)

    def _confirm(self, bills: Sequence[_SameBill]) -> None:
        """Record that the stored bills of a batch are still those of the provider."""
        run = self._run
        with run.catch_day_errors(*(bill.day for bill in bills)), run.lease.write() as connection:
            for bill in bills:
                day_states.save_day(connection, bill.day, gathered_at=bill.at, empty_answers=0)
                day_states.mark_incomplete(connection, bill.day, bill.lacks)

    def _unlisted_resources(self, lines: Sequence[BillingLine], now: datetime) -> dict[str, Resource]:
        """Return every billed resource that was never listed, as deleted if its type was just listed completely."""
        return {
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

    def _may_be_incomplete(self, state: DayState, gathered: GatheredDay) -> bool:
        """Return whether a bill has no lines, or fewer than are stored where that may be a mistake, unless the request
        accepts less."""
        run = self._run
        if run.tenant.ecosystem.capabilities.confirms_less and not (
            run.recalculates(gathered.day) and run.request.accept_less
        ):
            return len(gathered.lines) < (state.billing_lines or 0)
        return not gathered.lines and bool(state.billing_lines)

    def _defer(self, state: DayState, gathered: GatheredDay, times: int) -> None:
        day, found = state.tracking_date, len(gathered.lines)
        returned = f"{found} instead of {state.billing_lines} lines" if found else "no lines"
        self._run.record_error(
            f"the provider returned {returned} ({times} of {_EMPTY_RESPONSES_ACCEPTED} times), "
            "the stored lines are kept",
            day,
        )
        with self._run.lease.write() as connection:
            day_states.save_day(connection, day, gathered_at=self._run.now(), empty_answers=times)

    def _reject_day(self, day: date, problem: str, *, is_again: bool) -> None:
        """Record that a day's response is invalid; data from before the run is kept, and data that this run has stored
        for the day is not calculated. If a stored bill cannot be measured again, this is not an error."""
        if is_again and day not in self._replaced and not self._run.recalculates(day):
            log.info("tenant %s: %s is not measured again: %s", self._run.tenant.name, day, problem)
            with self._run.lease.write() as connection:
                day_states.save_day(connection, day, gathered_at=self._run.now())
            return
        withdrawn = {"billing_gathered": False} if day in self._replaced else {}
        self._run.record_day_errors(problem, day, **withdrawn)
