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

    @property
    def outcomes(self) -> str:
        """The table of the outcomes, see :func:`outcome_table`."""
        return f"outcomes_{self.place}"


@dataclass(frozen=True)
class Joined:
    """The table of a category's assignments, the condition (SQL) by which they fit a row of ``facts``, and whether some
    rows are split."""

    table: str
    condition: str
    splits: bool

    @property
    def join(self) -> str:
        """The join that adds the columns of the category to rows."""
        return f"LEFT JOIN {self.table} ON {self.condition}"


def join_assigned(cursor: Cursor, partials: PartialFiles | None, scan: Scan, used: UsedCategory) -> Joined:
    """Make the table of a category's assignments, and return how rows are joined with it.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    assignments, table = used.assignments, f"assigned_{used.place}"
    assigned = assignments.of(cursor, partials, scan)
    if cursor.made_of.get(table) is not assigned:
        _make(cursor, used, table, assigned)
        cursor.made_of[table] = assigned
    clauses = [
        f"of_{used.place}_{name} IS NOT DISTINCT FROM facts.{column}"
        for name, column in zip(assignments.subjects, assignments.columns, strict=True)
    ]
    if assigned.are_dated:
        clauses += [f"facts.date >= first_{used.place}", f"facts.date < end_{used.place}"]
    splits = any(len(outcome.parts) > 1 for outcome in assigned.outcomes)
    return Joined(table, " AND ".join(clauses) or "TRUE", splits)


def _make(cursor: Cursor, used: UsedCategory, table: str, assigned: Assigned) -> None:
    place = used.place
    cursor.register(f"periods_{place}", assigned.periods)
    cursor.register(used.outcomes, outcome_table(assigned))
    own = "".join(f"{name} AS of_{place}_{name}, " for name in used.assignments.subjects)
    receivers, weights = used.parts
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE {table} AS
            SELECT {own}first_day AS first_{place}, end_day AS end_{place}, value AS {used.value},
                   rule AS {used.rule}, outcome AS {used.outcome}, is_split AS {used.is_split},
                   receivers AS {receivers}, weights::HUGEINT[] AS {weights}, shares AS {used.share_texts}
            FROM periods_{place} JOIN {used.outcomes} USING (outcome)"""
    )


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
