"""Joins rows with the values of cost categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa

from chargeback.categories.handover import Receiver
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.queries.assignments import Assigned, Assignments
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.scan import Scan

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
    """A category of a query: its place, its assignments, and by UTC day who gets the cost of the values that hand it
    on."""

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
        """The column that tells whether a row is split."""
        return f"is_split_{self.place}"

    @property
    def outcome(self) -> str:
        """The column of the outcome, which decides everything above."""
        return f"outcome_{self.place}"


@dataclass(frozen=True)
class Joined:
    """How rows of ``facts`` are joined with a category.

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
        known = cursor.joined[used.place, id(assigned)] = (assigned, _joined(cursor, used, assigned))
    return known[1]


def _joined(cursor: Cursor, used: UsedCategory, assigned: Assigned) -> Joined:
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
    condition = " AND ".join(clauses_of(used, assigned.are_dated, "facts.")) or "TRUE"
    splits = any(len(outcome.parts) > 1 for outcome in assigned.outcomes)
    return Joined(table, outcomes, f"LEFT JOIN {table} ON {condition}", splits, assigned.are_dated)


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
