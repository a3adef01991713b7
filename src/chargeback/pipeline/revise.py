"""Replaces days, and keeps what it replaces: every content that a day has had is a revision.

The order makes a crash harmless: the superseded files go to the history, the revision is recorded, the new files are
committed, and then the day's state confirms the revision. Whoever reads in between finds the files of either revision.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.errors import DamagedFacts
from chargeback.model.money import difference, half_of_changes, total
from chargeback.pipeline.run_context import RunContext
from chargeback.store.control import day_revisions as revisions
from chargeback.store.control import days as day_states
from chargeback.store.control.day_revisions import FileNames, Revision
from chargeback.store.control.days import DayState
from chargeback.store.facts.history import file_names_of_day, has_content, keep_files
from chargeback.store.facts.tables import BILLING_TABLE, MEMBERS_TABLE, PreparedDay, read_day
from chargeback.store.queries.as_of import has_files, those_that_took_effect
from chargeback.store.queries.revised import REVISED, RevisedDataset

log = logging.getLogger(__name__)

# Arrow's sums keep the type of the summed values and overflow silently.
_WIDE: Final = pa.decimal256(76, 12)


@dataclass(frozen=True, slots=True)
class Revised:
    """What became of a day: the number of its revision, to be confirmed, and whether its rows are new."""

    number: int
    is_new: bool


class DayReviser:
    """Replaces days of one dataset in one run."""

    def __init__(self, run: RunContext, dataset: RevisedDataset) -> None:
        self._run = run
        self._dataset = dataset

    def replace(
        self, state: DayState, tables: Mapping[str, pa.Table], *, policies_hash: str | None, is_requested: bool
    ) -> Revised:
        """Replace the rows and evidence of a day by ``tables``; what has the same bytes already, stays.

        Raises:
            LeaseLost: another process has taken over.
            StorageError: something cannot be read or written.
        """
        day, facts = state.tracking_date, self._run.store.facts
        known = self._revisions(state)
        latest = known[-1] if known else None
        prepared = {name: facts.prepare_day(name, day, rows) for name, rows in tables.items()}
        # A day that somebody asked to recalculate is written again in any case: emitters pass it on again, too.
        same = {
            name
            for name, each in prepared.items()
            if has_content(facts, each) and not (is_requested and name == self._dataset.table)
        }
        for name in same:
            facts.discard_day(prepared.pop(name))
        if latest is not None and self._has_rows(latest, prepared):
            self._replace_evidence(latest, day, prepared)
            return Revised(latest.revision, is_new=False)
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
            tables[self._dataset.table].num_rows,
            _sum(tables[self._dataset.table]),
            self._moved(day, tables[self._dataset.table]) if latest else None,
            self._files(day, prepared),
        )
        with self._run.lease.write() as connection:
            revisions.record_revision(connection, revision)
            if getattr(state, self._dataset.is_calculated):
                day_states.save_day(connection, day, **{self._dataset.is_calculated: False})
        self._commit(prepared)
        return Revised(revision.revision, is_new=True)

    def _revisions(self, state: DayState) -> Sequence[Revision]:
        """Return the revisions of a day that took effect."""
        dataset, day = self._dataset, state.tracking_date
        with self._run.store.control.read() as connection:
            known = revisions.revisions_of_day(connection, dataset.name, day)
        present = self._run.store.facts.snapshot(dataset.table)
        return those_that_took_effect(dataset, known, _confirmed(state, dataset), present)

    def _has_rows(self, latest: Revision, prepared: Mapping[str, PreparedDay]) -> bool:
        """Return whether a day keeps the rows of its latest revision, if only because a damaged file is replaced by the
        same."""
        table = self._dataset.table
        if table not in prepared:
            return True
        return latest.files is not None and has_files(latest, self._dataset, prepared[table].file_names)

    def _replace_evidence(self, latest: Revision, day: date, prepared: Mapping[str, PreparedDay]) -> None:
        """The rows are the same: the new evidence explains them as well as the old."""
        self._commit(prepared)
        if prepared or latest.files is None:
            with self._run.lease.write() as connection:
                revisions.record_files(connection, latest, self._files(day, {}), latest.total)

    def _commit(self, prepared: Mapping[str, PreparedDay]) -> None:
        """Commit the evidence first, then the rows."""
        for name in sorted(prepared, key=lambda name: name == self._dataset.table):
            self._run.store.facts.commit_day(prepared[name], epoch=self._run.lease.epoch)

    def _keep(self, latest: Revision | None, day: date, prepared: Mapping[str, PreparedDay]) -> None:
        if latest is not None:
            for name in prepared:
                keep_superseded(self._run, latest, name, day)

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

    def _moved(self, day: date, rows: pa.Table) -> Decimal | None:
        """Return half of what changed for each payer; None if the rows before are lost."""
        try:
            before = read_day(self._run.store.facts, self._dataset.table, day)
        except DamagedFacts:
            return None
        sums = _sums_by(rows, self._dataset.payer)
        for payer, amount in _sums_by(before, self._dataset.payer).items():
            sums[payer] = difference(sums.get(payer, Decimal(0)), amount)
        return half_of_changes(sums.values())


def keep_superseded(run: RunContext, latest: Revision, name: str, day: date, *, is_same: bool = False) -> None:
    """Keep the files of a day that is about to be replaced in a table, as far as they belong to its latest revision.
    Damaged files cannot be kept, which is an error of the day unless they are replaced by the same.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the history cannot be written.
    """
    if latest.files is None:
        return
    names = latest.files.get(name, ())
    for damage in keep_files(run.store.facts, name, day, latest.revision, names, epoch=run.lease.epoch):
        if not is_same:
            run.record_error(f"what {name} had before cannot be kept: {damage}", day)


def keep_bill(run: RunContext, state: DayState, seen: str) -> None:
    """Keep the bill of a day, which is about to be replaced by one with the fingerprint ``seen``, if something was
    calculated from it.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the history cannot be written.
    """
    for dataset in REVISED.values():
        if _confirmed(state, dataset):
            with run.store.control.read() as connection:
                known = revisions.revisions_of_day(connection, dataset.name, state.tracking_date)
            for revision in known[-2:]:  # the last one may be unconfirmed
                is_same = revision.billing_fingerprint == seen
                keep_superseded(run, revision, BILLING_TABLE, state.tracking_date, is_same=is_same)


def _confirmed(state: DayState, dataset: RevisedDataset) -> int:
    """Return the number of the confirmed revision of a day, 0 if it has none."""
    number: int = getattr(state, revisions.CONFIRMED[dataset.name].name)
    return number


def _sum(rows: pa.Table) -> Decimal:
    return total([pc.sum(rows["amount"].cast(_WIDE), min_count=0).as_py()])


def _sums_by(rows: pa.Table, payer: Sequence[str]) -> dict[tuple[str, ...], Decimal]:
    texts = {name: rows[name].cast(pa.string()) for name in payer}
    wide = pa.table({**texts, "amount": rows["amount"].cast(_WIDE)})
    sums = wide.group_by(list(payer)).aggregate([("amount", "sum")])
    keys = zip(*(sums[name].to_pylist() for name in payer), strict=True)
    return dict(zip(keys, sums["amount_sum"].to_pylist(), strict=True))


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
        return _sum(read_day(run.store.facts, name, day))
    except DamagedFacts:
        return None
