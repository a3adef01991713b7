"""One day of a dataset as one of its revisions has it: its rows, and the evidence that they were calculated from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import total_of
from chargeback.allocation.explain import PortionExplanation
from chargeback.errors import DamagedFacts, HistoryGone
from chargeback.model.chargeback import METRICS_UNAVAILABLE
from chargeback.model.days import DayRange
from chargeback.model.money import checked_sum
from chargeback.store.control.catalogue import files_of_day
from chargeback.store.control.day_revisions import Revision, read_day_revisions
from chargeback.store.control.days import METRICS, DayState, read_days
from chargeback.store.control.inventory_lists import RESOURCES, names_of
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import DayFile, read_file
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    MEMBERS_TABLE,
    TOPIC_USAGE_TABLE,
    USAGE_TABLE,
    read_files,
)
from chargeback.store.queries.as_of import RevisedDataset, forgotten
from chargeback.store.tenant import TenantStore

#: What two lines for the same have in common: everything but quantities, prices, amounts, names and descriptions.
_SAME_LINE: Final = (
    *("timestamp", "granularity", "resource_id", "product_category", "product_type", "currency", "unit"),
    *("network_access_type", "tier"),
)


_DETAIL: Final = "allocation_detail"

#: The evidence of a day in words, by its table.
_EVIDENCE: Final = {
    BILLING_TABLE: "the bill",
    USAGE_TABLE: "the measured usage",
    MEMBERS_TABLE: "the list of owners and active identities",
    TOPIC_USAGE_TABLE: "the measured usage of topics",
}


class LineNotFound(LookupError):
    """The day has no such line, or the line no such portion; the message says which."""


@dataclass(frozen=True, slots=True)
class LineRows:
    """All stored rows of a line: how many (None: not shown), their sum, and whether it is the cost of the line (None:
    unknown)."""

    rows: int | None
    sum: Decimal
    equals_line: bool | None

    @classmethod
    def of(cls, rows: pa.Table, line: Mapping[str, Any] | None) -> LineRows:
        """Return what the rows of a line are together; None for a line whose bill is lost."""
        charged = checked_sum(total_of(rows["amount"]))
        return cls(rows.num_rows, charged, None if line is None else charged == line["total_cost"])


@dataclass(frozen=True, slots=True)
class AmountInRevision:
    """The amount in one revision of the day.

    Attributes:
        line_id: the line in that revision: a line whose content changes gets another id. None if there is none, or if
            it is not clear which it is.
        amount: zero without a line or a row; None if it is not known, because files are damaged or no longer kept, or
            because several lines may be the one.
    """

    revision: Revision
    line_id: str | None
    amount: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What every explanation of an amount has, of chargebacks and topics.

    Attributes:
        row: the stored row; None if there is none.
        line: the billing line (columns of BILLING); None if the bill is lost.
        billed: the line or, if the bill is lost, a stored row of it.
        portion: the calculation; None if the evidence is missing.
        missing: why the evidence is missing.
        siblings: all stored rows of the line.
        revision: the number of the revision in force; None if it is not known.
        revisions: the amount in every revision of the day.
        is_same: whether the calculation gives what is stored; None if the evidence is missing.
    """

    row: Mapping[str, Any] | None
    line: Mapping[str, Any] | None
    billed: Mapping[str, Any] | None
    portion: PortionExplanation | None
    missing: str | None
    siblings: LineRows
    revision: int | None
    revisions: Sequence[AmountInRevision]
    is_same: bool | None


class StoredDay:
    """One day of a dataset in the revision that was in force; reads every file at most once.

    Attributes:
        revision: the revision in force; None if it is not known.
        revisions: all revisions of the day, ascending.
    """

    def __init__(self, store: TenantStore, dataset: RevisedDataset, day: date, as_of: datetime | None) -> None:
        """Open a day as it is, or as it was at the instant ``as_of``.

        Raises:
            LineNotFound: the day is not calculated, or was not then.
            HistoryGone: the rows of that instant are no longer kept.
            StorageError: the tenant's storage cannot be read.
        """
        self._facts = store.facts
        self._read: dict[tuple[str, ...], pa.Table] = {}
        self._dataset = dataset
        self._day = day
        with store.control.read() as connection:
            states = read_days(connection, DayRange.of_day(day))
            self.revisions: Sequence[Revision] = read_day_revisions(connection, dataset.name, DayRange.of_day(day))
            self._named = files_of_day(connection, day)
        self._state: DayState | None = states[0] if states else None
        in_force = [each for each in self.revisions if as_of is None or each.calculated_at <= as_of]
        if self.revisions and not in_force:
            raise LineNotFound(f"The day {day} was not calculated then.")
        self.revision: Revision | None = in_force[-1] if in_force else None
        files = self._files(dataset.table, self.revision)
        if files is None:
            raise HistoryGone([forgotten(each) for each in (self.revision,) if each is not None])
        self._row_files = files
        if not self.revisions and not any(file.rows for file in files):
            raise LineNotFound(f"The day {day} is not calculated.")

    def lacks(self, what: str) -> bool:
        """Return whether evidence is known to be missing; only the state of the latest revision is kept."""
        is_latest = self.revision is None or self.revision == self.revisions[-1]
        return is_latest and self._state is not None and what in self._state.incomplete

    @cached_property
    def rows(self) -> pa.Table:
        """The rows of the revision in force, with texts as dictionaries.

        Raises:
            DamagedFacts: a file of them is lost.
        """
        return self._table(self._dataset.table, self._row_files)

    def had_metrics(self) -> bool:
        """Return whether the day was calculated with metrics: the rows show it, and the state of the latest revision.

        Raises:
            DamagedFacts: a file of the rows is lost.
        """
        read = self._read.get(_key(self._dataset.table, self._row_files))
        with translate_file_errors(self._dataset.table):
            tables = [read_file(file, [_DETAIL]) for file in self._row_files] if read is None else [read]
        details = [table[_DETAIL].unique().to_pylist() for table in tables]
        return not any(METRICS_UNAVAILABLE in each for each in details) and not self.lacks(METRICS)

    def evidence(self) -> tuple[list[pa.Table | None], str | None]:
        """Return the tables that the rows were calculated from, in the dataset's order, each None if it is lost; and
        why the first one is."""
        found: list[pa.Table | None] = []
        missing = None
        for name in self._dataset.evidence:
            files, table = self._files(name, self.revision), None
            if files is None:
                reason = f"{_EVIDENCE[name]} of that revision is no longer kept; history_days says for how long it is"
            else:
                try:
                    table, reason = self._table(name, files), ""
                except DamagedFacts:
                    reason = f"{_EVIDENCE[name]} of that day cannot be read; `chargeback verify` names the damaged file"
            missing = missing or reason or None
            found.append(table)
        return found, missing

    def amounts(
        self, line_id: str, line: Mapping[str, Any] | None, find: Callable[[pa.Table], Mapping[str, Any] | None]
    ) -> list[AmountInRevision]:
        """Return an amount in every revision of the day: that of the row that ``find`` finds among those of a line.

        ``line`` is the line on the bill in force, None if that is lost: then it is not found where its id is another.
        """
        return [self._amount(revision, line_id, line, find) for revision in self.revisions]

    def _amount(
        self,
        revision: Revision,
        line_id: str,
        line: Mapping[str, Any] | None,
        find: Callable[[pa.Table], Mapping[str, Any] | None],
    ) -> AmountInRevision:
        rows = self.rows if revision == self.revision else self._stored(self._dataset.table, revision)
        if rows is None:
            return AmountInRevision(revision, None, None)
        of_line = where(rows, line_id=line_id)
        ids = [line_id] if line is None or of_line.num_rows else self._lines_like(revision, line)
        if ids is None or len(ids) > 1:
            return AmountInRevision(revision, None, None)
        row = find(of_line if ids == [line_id] else where(rows, line_id=ids[0])) if ids else None
        return AmountInRevision(revision, ids[0] if ids else None, Decimal(0) if row is None else row["amount"])

    def _lines_like(self, revision: Revision, line: Mapping[str, Any]) -> list[str] | None:
        """Return the ids of the lines that a revision has in the place of a line: the line itself or, without it, those
        for the same that are not on the bill in force. None if a bill is lost."""
        then, now = self._stored(BILLING_TABLE, revision), self._stored(BILLING_TABLE, self.revision)
        if then is None or now is None:
            return None
        if where(then, line_id=line["line_id"]).num_rows:
            return [line["line_id"]]
        same = [
            pc.is_null(then[name])
            if line[name] is None
            else pc.equal(then[name], pa.scalar(line[name], then[name].type))
            for name in _SAME_LINE
        ]
        ids: list[str] = then.filter(reduce(pc.and_, same))["line_id"].to_pylist()
        return sorted(set(ids) - set(now["line_id"].to_pylist()))

    def _files(self, name: str, revision: Revision | None) -> tuple[DayFile, ...] | None:
        """Return the files that a table had in a revision, or None if one of them is gone: the bill that was charged,
        and what was known of the measurements last, before the next revision."""
        later = [] if revision is None else [each for each in self.revisions if each.revision > revision.revision]
        if name == BILLING_TABLE and revision is not None:
            found = [each for each in self._named if each.is_in_force(revision.calculated_at)]
        elif later:
            end = later[0].calculated_at
            found = [each for each in self._named if each.since < end and (each.until is None or each.until >= end)]
        else:
            found = [each for each in self._named if each.until is None]
        of_table = [each for each in found if each.table == name]
        if any(each.gone_at is not None for each in of_table):
            return None
        return tuple(self._facts.day_file(each) for each in of_table)

    def _stored(self, name: str, revision: Revision | None) -> pa.Table | None:
        """Return what a table had in a revision; None if it is damaged or no longer kept."""
        files = self._files(name, revision)
        try:
            return None if files is None else self._table(name, files)
        except DamagedFacts:
            return None

    def _table(self, name: str, files: tuple[DayFile, ...]) -> pa.Table:
        """Return the rows of files. Revisions of a day share most of them, so what was read is kept."""
        key = _key(name, files)
        if key not in self._read:
            self._read[key] = read_files(name, self._day, files, is_encoded=name == self._dataset.table)
        return self._read[key]


def _key(name: str, files: Sequence[DayFile]) -> tuple[str, ...]:
    return (name, *(file.path for file in files))


def resource_name(store: TenantStore, line: Mapping[str, Any]) -> str | None:
    """Return the display name of the resource of a line: that of the inventory, else that of the bill."""
    resource_id: str = line["resource_id"]
    with store.control.read() as connection:
        known = names_of(connection, RESOURCES, [resource_id]).get(resource_id)
    return (known.name if known else None) or line["resource_name"]


def where(table: pa.Table, **values: str) -> pa.Table:
    """Return the rows that have some values in columns of text."""
    conditions = [pc.equal(table[name], pa.scalar(value, pa.string())) for name, value in values.items()]
    return table.filter(reduce(pc.and_, conditions))


def first(table: pa.Table, **values: str) -> dict[str, Any] | None:
    """Return the first row that has some values, or None."""
    found = where(table, **values) if values else table
    rows: list[dict[str, Any]] = found.slice(0, 1).to_pylist()
    return rows[0] if rows else None
