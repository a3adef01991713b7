"""Replaces days, and keeps what it replaces: each content of a day is a revision.

Files are written first; readers do not see them. One transaction then makes them the files of their days, and records
the revisions and the states of the days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
from sqlalchemy import Connection

from chargeback.errors import DamagedFacts
from chargeback.model.money import exact_sum, half_of_changes
from chargeback.pipeline.day_task import NewRows, sums_by
from chargeback.pipeline.run_context import RunContext
from chargeback.store.control import day_revisions as revisions
from chargeback.store.control.catalogue import NewContent
from chargeback.store.control.day_revisions import Revision
from chargeback.store.control.days import DayState
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import check_content
from chargeback.store.facts.tables import MEMBERS_TABLE, FactTables, discard, read_day
from chargeback.store.queries.as_of import RevisedDataset


@dataclass(frozen=True, slots=True)
class RevisedDay:
    """A day that is ready to be replaced.

    Attributes:
        state: the state of the day before.
        contents: the new contents, by table.
        revision: the revision that the day has afterwards.
        is_new: whether it is a new revision; if not, the rows stay as they are.
    """

    state: DayState
    contents: Mapping[str, NewContent]
    revision: Revision
    is_new: bool


class DayReviser:
    """Replaces days of one dataset in one run."""

    def __init__(self, run: RunContext, dataset: RevisedDataset) -> None:
        self._run = run
        self._dataset = dataset

    def prepare(
        self,
        state: DayState,
        new: NewRows,
        evidence: Mapping[str, pa.Table],
        *,
        policies_hash: str | None,
        policy_version: str | None = None,
        is_requested: bool,
    ) -> RevisedDay:
        """Prepare to replace the rows and ``evidence`` of a day; contents with the same bytes stay. Readers see no
        change before :meth:`commit`.

        Raises:
            StorageError: something cannot be read or written.
        """
        day, facts = state.tracking_date, self._run.store.facts
        with self._run.store.control.read() as connection:
            latest = revisions.latest_revision(connection, self._dataset.name, day)
        written = {self._dataset.table: new.content, **facts.prepare_tables(day, evidence)}
        # A day whose recalculation was requested is always written again, so that it is also emitted again.
        same = {
            name
            for name, each in written.items()
            if _has_content(facts, each) and not (is_requested and name == self._dataset.table)
        }
        for name in same:
            discard(facts.place, written[name])
        contents = {name: each for name, each in written.items() if name not in same}
        if latest is not None and self._keeps_rows(contents, latest):
            return RevisedDay(state, contents, latest, is_new=False)
        now = self._run.now()
        revision = Revision(
            self._dataset.name,
            day,
            latest.revision + 1 if latest else 1,
            now,
            self._cause(state, latest, policies_hash, contents, is_requested=is_requested),
            self._run.run_id,
            state.gathered_fingerprint,
            policies_hash,
            new.rows,
            new.total,
            self._moved(day, new.sums) if latest else None,
            policy_version,
        )
        return RevisedDay(state, contents, revision, is_new=True)

    def commit(self, connection: Connection, days: Sequence[RevisedDay], at: datetime) -> None:
        """Replace prepared days, from the instant ``at`` on."""
        for each in days:
            if each.is_new:
                revisions.record_revision(connection, replace(each.revision, calculated_at=at))
        contents = [content for each in days for content in each.contents.values()]
        self._run.store.facts.replace(connection, contents, at)

    def _keeps_rows(self, contents: Mapping[str, NewContent], latest: Revision) -> bool:
        """Return whether a day keeps the rows of its latest revision, including when a damaged file is replaced by an
        equal one."""
        content = contents.get(self._dataset.table)
        if content is None:
            return True
        return latest.cause != revisions.RETENTION and self._run.store.facts.has_rows_of(content)

    def _cause(
        self,
        state: DayState,
        latest: Revision | None,
        policies_hash: str | None,
        contents: Mapping[str, NewContent],
        *,
        is_requested: bool,
    ) -> str:
        """Return why a day gets new rows: what has changed, or a request if nothing has."""
        if latest is None or latest.cause == revisions.RETENTION:
            return revisions.FIRST
        if latest.billing_fingerprint != state.gathered_fingerprint:
            return revisions.BILL_CHANGED
        if None not in (latest.policies_hash, policies_hash) and latest.policies_hash != policies_hash:
            return revisions.POLICY_CHANGED
        if self._dataset.usage in contents:
            return revisions.METRICS_RETURNED
        if MEMBERS_TABLE in contents:
            return revisions.MEMBERS_CHANGED
        return revisions.MANUAL if is_requested else revisions.REPAIR

    def _moved(self, day: date, now: Mapping[tuple[str, ...], Decimal]) -> Decimal | None:
        """Return half of the sum of the changes of all payers; None if the earlier rows are lost."""
        try:
            before = read_day(self._run.store.facts, self._dataset.table, day)
        except DamagedFacts:
            return None
        sums = dict(now)
        for payer, amount in sums_by(before, self._dataset.payer).items():
            sums[payer] = exact_sum([sums.get(payer, Decimal(0)), amount.copy_negate()])
        return half_of_changes(sums.values())


def _has_content(facts: FactTables, content: NewContent) -> bool:
    """Return whether a table already has, undamaged, exactly the rows that were written for a day."""
    if not facts.has_rows_of(content):
        return False
    try:
        with translate_file_errors(content.table):
            for file in facts.snapshot(content.table).of_day(content.day):
                check_content(file)
    except DamagedFacts:
        return False
    return True
