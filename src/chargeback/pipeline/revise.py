"""Replaces days, and keeps what it replaces: every content that a day has had is a revision.

Days are replaced in batches. The order makes a crash harmless: the superseded files go to the history, the revisions
are recorded, the new files are committed, and then the states of the days confirm the revisions. Whoever reads in
between finds the files of either revision.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

import pyarrow as pa
from sqlalchemy import Connection

from chargeback.errors import DamagedFacts
from chargeback.model.money import exact_sum, half_of_changes
from chargeback.pipeline.day_task import NewRows, sum_of, sums_by
from chargeback.pipeline.run_context import RunContext
from chargeback.store.control import day_revisions as revisions
from chargeback.store.control import days as day_states
from chargeback.store.control.day_revisions import FileNames, Revision
from chargeback.store.control.days import DayState
from chargeback.store.facts.history import HistoryWriter, file_names_of_day, has_content
from chargeback.store.facts.parallel import side_by_side
from chargeback.store.facts.tables import BILLING_TABLE, MEMBERS_TABLE, PreparedDay, read_day
from chargeback.store.queries.as_of import REVISED, RevisedDataset, has_files, those_that_took_effect

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RevisedDay:
    """A day that is ready to be replaced.

    Attributes:
        state: the state of the day before.
        prepared: the files to commit, by table.
        revision: the revision that the day has afterwards.
        is_new: whether it is a new revision; if not, the rows stay as they are.
        files: the files that the day has afterwards.
    """

    state: DayState
    prepared: Mapping[str, PreparedDay]
    revision: Revision
    is_new: bool
    files: FileNames


class DayReviser:
    """Replaces days of one dataset in one run."""

    def __init__(self, run: RunContext, dataset: RevisedDataset) -> None:
        self._run = run
        self._dataset = dataset
        self._history = HistoryWriter(run.store.facts, epoch=run.lease.epoch)

    def prepare(
        self,
        state: DayState,
        new: NewRows,
        evidence: Mapping[str, pa.Table],
        *,
        policies_hash: str | None,
        is_requested: bool,
    ) -> RevisedDay:
        """Prepare to replace the rows and ``evidence`` of a day; what has the same bytes already, stays. Readers notice
        nothing before :meth:`commit`.

        Raises:
            StorageError: something cannot be read or written.
        """
        day, facts = state.tracking_date, self._run.store.facts
        known = self._revisions(state)
        latest = known[-1] if known else None
        prepared = {
            self._dataset.table: new.prepared,
            **facts.prepare_tables(day, evidence),
        }
        # A day whose recalculation was requested is written again in any case: emitters pass it on again, too.
        same = {
            name
            for name, each in prepared.items()
            if has_content(facts, each) and not (is_requested and name == self._dataset.table)
        }
        for name in same:
            facts.discard_day(prepared.pop(name))
        files = self._files(day, prepared)
        if latest is not None and self._has_rows(latest, prepared):
            return RevisedDay(state, prepared, latest, is_new=False, files=files)
        self._keep(latest, day, prepared)
        revision = Revision(
            self._dataset.name,
            day,
            latest.revision + 1 if latest else 1,
            max(self._run.now(), latest.calculated_at) if latest else self._run.now(),
            self._cause(state, latest, policies_hash, prepared, is_requested=is_requested),
            self._run.run_id,
            state.gathered_fingerprint,
            policies_hash,
            new.rows,
            new.total,
            self._moved(day, new.sums) if latest else None,
            files,
        )
        return RevisedDay(state, prepared, revision, is_new=True, files=files)

    def commit(self, days: Sequence[RevisedDay], record: Callable[[Connection], None] = lambda _: None) -> None:
        """Replace prepared days. ``record`` writes in the transaction before their rows are visible.

        Raises:
            LeaseLost: another process has taken over.
            StorageError: something cannot be written.
        """
        self._history.commit()
        with self._run.lease.write() as connection:
            record(connection)
            # The days of one transaction have one instant: together they are one change of what is made of them.
            at = max([self._run.now(), *(each.revision.calculated_at for each in days if each.is_new)])
            for each in days:
                if each.is_new:
                    revisions.record_revision(connection, replace(each.revision, calculated_at=at))
                    if each.state.of(self._dataset.name).is_current:
                        day_states.mark_due(connection, self._dataset.name, [each.state.tracking_date])

        def replace_rows(name: str) -> None:
            prepared = [each.prepared[name] for each in days if name in each.prepared]
            self._run.store.facts.commit_days(prepared, epoch=self._run.lease.epoch)

        side_by_side(replace_rows, [name for name in self._dataset.tables if name != self._dataset.table])
        replace_rows(self._dataset.table)  # the evidence first, then the rows

    def confirm(self, connection: Connection, day: RevisedDay) -> None:
        """Record the evidence of a committed day whose rows are the same: the new evidence explains them as well as the
        old."""
        latest = day.revision
        if not day.is_new and (day.prepared or latest.files is None):
            revisions.record_files(connection, latest, day.files, latest.total)

    def _revisions(self, state: DayState) -> Sequence[Revision]:
        """Return the revisions of a day that took effect."""
        dataset, day = self._dataset, state.tracking_date
        with self._run.store.control.read() as connection:
            known = revisions.revisions_of_day(connection, dataset.name, day)
        present = self._run.store.facts.snapshot(dataset.table)
        return those_that_took_effect(dataset, known, state.of(dataset.name).revision, present)

    def _has_rows(self, latest: Revision, prepared: Mapping[str, PreparedDay]) -> bool:
        """Return whether a day keeps the rows of its latest revision, if only because a damaged file is replaced by the
        same."""
        table = self._dataset.table
        if table not in prepared:
            return True
        return latest.files is not None and has_files(latest, self._dataset, prepared[table].file_names)

    def _keep(self, latest: Revision | None, day: date, prepared: Mapping[str, PreparedDay]) -> None:
        if latest is not None:
            for name in prepared:
                keep_superseded(self._run, self._history, latest, name, day)

    def _files(self, day: date, prepared: Mapping[str, PreparedDay]) -> FileNames:
        """Return the files that a day has once ``prepared`` is committed."""
        facts = self._run.store.facts
        return {
            name: prepared[name].file_names if name in prepared else file_names_of_day(facts.snapshot(name), day)
            for name in self._dataset.tables
        }

    def _cause(
        self,
        state: DayState,
        latest: Revision | None,
        policies_hash: str | None,
        prepared: Mapping[str, PreparedDay],
        *,
        is_requested: bool,
    ) -> str:
        """Return why a day gets new rows: what differs says more than who asked for it."""
        if latest is None or latest.cause == revisions.RETENTION:
            return revisions.FIRST
        if latest.billing_fingerprint != state.gathered_fingerprint:
            return revisions.BILL_CHANGED
        if None not in (latest.policies_hash, policies_hash) and latest.policies_hash != policies_hash:
            return revisions.POLICY_CHANGED
        if self._dataset.usage in prepared:
            return revisions.METRICS_RETURNED
        if MEMBERS_TABLE in prepared:
            return revisions.MEMBERS_CHANGED
        return revisions.MANUAL if is_requested else revisions.REPAIR

    def _moved(self, day: date, now: Mapping[tuple[str, ...], Decimal]) -> Decimal | None:
        """Return half of what changed for each payer; None if the rows before are lost."""
        try:
            before = read_day(self._run.store.facts, self._dataset.table, day)
        except DamagedFacts:
            return None
        sums = dict(now)
        for payer, amount in sums_by(before, self._dataset.payer).items():
            sums[payer] = exact_sum([sums.get(payer, Decimal(0)), amount.copy_negate()])
        return half_of_changes(sums.values())


def keep_superseded(
    run: RunContext, history: HistoryWriter, latest: Revision, name: str, day: date, *, is_same: bool = False
) -> None:
    """Keep the files of a day that is about to be replaced in a table, as far as they belong to its latest revision;
    they are part of the ``history`` when it is committed. Damaged files cannot be kept, which is an error of the day
    unless they are replaced by the same.

    Raises:
        StorageError: a file cannot be read or written.
    """
    if latest.files is None:
        return
    for damage in history.add(name, day, latest.revision, latest.files.get(name, ())):
        if not is_same:
            run.record_error(f"what {name} had before cannot be kept: {damage}", day)


def keep_bill(run: RunContext, history: HistoryWriter, state: DayState, seen: str) -> None:
    """Keep the bill of a day, which is about to be replaced by one with the fingerprint ``seen``, if something was
    calculated from it. It is part of the ``history`` when that is committed.

    Raises:
        StorageError: a file cannot be read or written.
    """
    for dataset in REVISED.values():
        with run.store.control.read() as connection:
            known = revisions.revisions_of_day(connection, dataset.name, state.tracking_date)
        for revision in known[-2:]:  # the last one may be unconfirmed, even the first
            is_same = revision.billing_fingerprint == seen
            keep_superseded(run, history, revision, BILLING_TABLE, state.tracking_date, is_same=is_same)


def record_first_files(run: RunContext) -> None:
    """Record the files and totals of revisions that an earlier version calculated, before anything replaces them.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: something cannot be read.
    """
    with run.store.control.read() as connection:
        unrecorded = revisions.without_files(connection)
        states = {state.tracking_date: state for state in day_states.read_days(connection)} if unrecorded else {}
    for revision in unrecorded:
        run.check()
        day, dataset = revision.tracking_date, REVISED[revision.dataset]
        facts = run.store.facts
        is_billed_so = day in states and states[day].gathered_fingerprint == revision.billing_fingerprint
        names = [name for name in dataset.tables if name != BILLING_TABLE or is_billed_so]
        files = {name: file_names_of_day(facts.snapshot(name), day) for name in names}
        with run.lease.write() as connection:
            revisions.record_files(connection, revision, files, _stored_sum(run, dataset.table, day))


def _stored_sum(run: RunContext, name: str, day: date) -> Decimal | None:
    """Return the sum of the stored amounts of a day; None if a file is damaged."""
    try:
        return sum_of(read_day(run.store.facts, name, day))
    except DamagedFacts:
        return None
