"""Which value of a cost category each combination of columns has, and on which days.

The rules of a category see some columns of a row only. The combinations that occur are far fewer than the rows, so
rules are resolved for each combination once, and rows are joined with the result. Combinations are read from the files
that were not looked at yet; those that a query does not need do no harm, so the result only grows.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Final

import pyarrow as pa

from chargeback.categories.document import CostCategory
from chargeback.categories.handover import Receiver
from chargeback.categories.resolve import Names, Outcome, Tags, resolve, used_columns
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import SumSource, sum_sources, with_first
from chargeback.store.queries.scan import Scan
from chargeback.store.queries.visible_sums import VisibleSums

#: The most resolutions that are kept, of all tenants.
_MOST: Final = 64
#: The most memory for a set of kept sums, of each of them.

_Combination = tuple[str | None, ...]


@dataclass(frozen=True)
class Assigned:
    """The resolved combinations: ``periods`` as of :class:`~chargeback.categories.resolve.Resolved`."""

    periods: pa.Table
    outcomes: tuple[Outcome, ...]

    @cached_property
    def are_dated(self) -> bool:
        """Whether the value of some combination depends on the day."""
        return self.periods.num_rows > 0 and (
            len(self.periods["first_day"].unique()) > 1 or len(self.periods["end_day"].unique()) > 1
        )

    @cached_property
    def splits(self) -> bool:
        """Whether some combination is split."""
        return any(len(outcome.parts) > 1 for outcome in self.outcomes)


@dataclass
class Assignments:
    """The values of one category on the rows of one dataset, as one state of tags and names decides them. Safe for use
    by several threads."""

    category: CostCategory
    dataset: Dataset
    tags: Tags
    names: Names
    #: The receivers of reallocated cost, by the path of a day's file and by value, see
    #: :mod:`~chargeback.store.queries.categorised`.
    shares: dict[str, Mapping[str, Sequence[Receiver]]] = field(default_factory=dict, repr=False)
    #: Sums that are kept, see :mod:`~chargeback.store.queries.categorised`.
    sums: VisibleSums = field(default_factory=VisibleSums, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _seen: set[str] = field(default_factory=set, repr=False)
    _known: set[_Combination] = field(default_factory=set, repr=False)
    _assigned: Assigned | None = field(default=None, repr=False)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Return the columns that the rules read and the dataset has; none if all rows are the same to the rules."""
        return tuple(name for name in used_columns(self.category) if name in self.dataset.subjects)

    @property
    def columns(self) -> tuple[str, ...]:
        """The same as columns of the dataset."""
        return tuple(self.dataset.subjects[name] for name in self.subjects)

    @property
    def splits(self) -> bool:
        """Whether some combination that was looked at is split."""
        return self._assigned is not None and self._assigned.splits

    def of(self, cursor: Cursor, partials: PartialFiles | None, scan: Scan) -> Assigned:
        """Return the value of at least every combination in the files of a scan.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        new = [file for file in scan.files if file.path not in self._seen]
        found = self._distinct(cursor, partials, scan, new) if new or self._assigned is None else set()
        with self._lock:
            unknown = sorted(found - self._known, key=_texts)
            if unknown or self._assigned is None:
                self._assigned = _joined(self._assigned, self._resolved(unknown, cursor))
                self._known.update(unknown)
            self._seen.update(file.path for file in new)
            return self._assigned

    def known_subjects(self) -> pa.Table:
        """Return the combinations that were looked at, as the resolver takes them."""
        with self._lock:
            return self._table(sorted(self._known, key=_texts))

    def _distinct(
        self, cursor: Cursor, partials: PartialFiles | None, scan: Scan, files: Sequence[DayFile]
    ) -> set[_Combination]:
        """Return the combinations in some files of a scan, and in those between them: then partial aggregates fit."""
        if not self.columns:
            return {()}
        if not files:
            return set()

        def _read(source: SumSource) -> set[_Combination]:
            sql = f"SELECT DISTINCT {', '.join(self.columns)} FROM {source.relation} WHERE {source.condition.sql}"
            return set(cursor.rows(sql, source.condition.parameters))

        return with_first(sum_sources(cursor, partials, self.dataset, scan.spanning(files), self.columns), _read)

    def _resolved(self, combinations: Sequence[_Combination], cursor: Cursor) -> Assigned:
        """Resolve the rules for some combinations; what the dataset does not have is unknown."""
        resolved = resolve(self.category, self._table(combinations), self.tags, self.names, cursor.check)
        return Assigned(resolved.periods, resolved.outcomes)

    def _table(self, combinations: Sequence[_Combination]) -> pa.Table:
        columns = dict(zip(self.subjects, zip(*combinations, strict=True), strict=False))
        nothing: tuple[None, ...] = (None,) * len(combinations)
        return pa.table(
            {name: pa.array(columns.get(name, nothing), pa.string()) for name in used_columns(self.category)}
        )


def _texts(combination: _Combination) -> list[str]:
    return [text or "" for text in combination]


def _joined(known: Assigned | None, new: Assigned) -> Assigned:
    """Return both; equal outcomes have one place."""
    if known is None:
        return new
    places = {outcome: place for place, outcome in enumerate(known.outcomes)}
    moved = [places.setdefault(outcome, len(places)) for outcome in new.outcomes]
    column = pa.array([moved[place] for place in new.periods["outcome"].to_pylist()], pa.int32())
    at = new.periods.schema.get_field_index("outcome")
    periods = pa.concat_tables([known.periods, new.periods.set_column(at, "outcome", column)])
    return Assigned(periods, tuple(places))


class AssignmentCache:
    """The assignments that were used last. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str, datetime | None], Assignments] = OrderedDict()

    def get(
        self,
        tenant_name: str,
        key: str,
        dataset: Dataset,
        category: CostCategory,
        tags: Tags,
        names: Names,
        at: datetime | None = None,
    ) -> Assignments:
        """Return the assignments of a category to the rows of a dataset, of this very state of tags and names: the
        present one, or that ``at`` an instant."""
        place = (tenant_name, dataset.table, key, at)
        with self._lock:
            known = self._kept.get(place)
            if known is None or known.category != category or known.tags is not tags or known.names is not names:
                known = self._kept[place] = Assignments(category, dataset, tags, names)
            self._kept.move_to_end(place)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
            return known


_OUTCOMES: Final = pa.schema(
    [
        ("outcome", pa.int32()),
        ("value", pa.string()),
        ("rule", pa.int32()),
        ("is_split", pa.bool_()),
        ("receivers", pa.list_(pa.string())),
        ("weights", pa.list_(pa.int64())),
        ("shares", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class UsedCategory:
    """A category of a query: its place, its assignments, and by UTC day the receivers of reallocated cost."""

    place: int
    assignments: Assignments
    shares: Mapping[date, Mapping[str, Sequence[Receiver]]] = field(default_factory=dict)

    @property
    def value(self) -> str:
        """The column of its values."""
        return f"category_{self.place}"

    @property
    def rule(self) -> str:
        """The column of the places of the rules that assigned them; null where none did."""
        return f"rule_{self.place}"

    @property
    def parts(self) -> tuple[str, str]:
        """The columns of the receivers of a split, and of their weights; null where a row has one value."""
        return f"receivers_{self.place}", f"weights_{self.place}"

    @property
    def share_texts(self) -> str:
        """The column of the shares of the receivers of a split, as text."""
        return f"shares_{self.place}"

    @property
    def is_split(self) -> str:
        """The column that says whether a row is split."""
        return f"is_split_{self.place}"

    @property
    def outcome(self) -> str:
        """The column of the outcome, which decides everything above."""
        return f"outcome_{self.place}"


@dataclass(frozen=True)
class Joined:
    """How rows of ``stored`` are joined with a category.

    Attributes:
        table: the table of its assignments.
        outcomes: the table of its outcomes, see :func:`outcome_table`.
        join: the join (SQL) that adds the columns of the category to rows.
        splits: whether some rows are split.
        are_dated: whether the value of some rows depends on the day.
    """

    table: str
    outcomes: str
    join: str
    splits: bool
    are_dated: bool


def join_assigned(cursor: Cursor, partials: PartialFiles | None, scan: Scan, used: UsedCategory) -> Joined:
    """Make the table of a category's assignments, and return how rows are joined with it.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    assigned = used.assignments.of(cursor, partials, scan)
    known = cursor.joined.get((used.place, id(assigned)))
    if known is None:
        # What was assigned is kept with the tables that were made of it, so that its id stays its own.
        known = cursor.joined[used.place, id(assigned)] = (assigned, _tables_of(cursor, used, assigned))
    return known[1]


def _tables_of(cursor: Cursor, used: UsedCategory, assigned: Assigned) -> Joined:
    place, assignments = used.place, used.assignments
    periods = cursor.register(cursor.new_name("periods"), assigned.periods)
    outcomes = cursor.register(cursor.new_name("outcomes"), outcome_table(assigned))
    table = cursor.new_name("assigned")
    own = "".join(f"{name} AS of_{place}_{name}, " for name in assignments.subjects)
    receivers, weights = used.parts
    cursor.run(
        f"""CREATE TEMP TABLE {table} AS
            SELECT {own}first_day AS first_{place}, end_day AS end_{place}, value AS {used.value},
                   rule AS {used.rule}, outcome AS {used.outcome}, is_split AS {used.is_split},
                   receivers AS {receivers}, weights::HUGEINT[] AS {weights}, shares AS {used.share_texts}
            FROM {periods} JOIN {outcomes} USING (outcome)"""
    )
    condition = " AND ".join(clauses_of(used, assigned.are_dated, "stored.")) or "TRUE"
    return Joined(table, outcomes, f"LEFT JOIN {table} ON {condition}", assigned.splits, assigned.are_dated)


def clauses_of(used: UsedCategory, are_dated: bool, row: str) -> list[str]:
    """Return the clauses (SQL) by which assignments fit a row, whose columns begin with ``row``."""
    assignments, place = used.assignments, used.place
    clauses = [
        f"of_{place}_{name} IS NOT DISTINCT FROM {row}{column}"
        for name, column in zip(assignments.subjects, assignments.columns, strict=True)
    ]
    return clauses + ([f"{row}date >= first_{place}", f"{row}date < end_{place}"] if are_dated else [])


def outcome_table(assigned: Assigned) -> pa.Table:
    """Return the outcomes of assignments: the value, or the receivers of a split with their weights."""
    rows = []
    for place, outcome in enumerate(assigned.outcomes):
        values, weights = [value for value, _ in outcome.parts], [weight for _, weight in outcome.parts]
        is_split = len(values) > 1
        rows.append(
            {
                "outcome": place,
                "value": values[0],
                "rule": outcome.rule,
                "is_split": is_split,
                "receivers": values if is_split else None,
                "weights": weights if is_split else None,
                "shares": [share_text(weight, sum(weights)) for weight in weights] if is_split else None,
            }
        )
    return pa.Table.from_pylist(rows, _OUTCOMES)


def share_text(weight: int, total: int) -> str:
    """Return the share of a part as a decimal number.

    >>> share_text(3, 5), share_text(1, 1)
    ('0.6', '1')
    """
    return f"{(Decimal(weight) / total).normalize():f}"
