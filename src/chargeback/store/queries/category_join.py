"""Joins rows with the values of cost categories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa

from chargeback.categories.weights import Outcome
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.queries.assignments import Assigned, Assignments
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.scan import Scan

_OUTCOMES: Final = pa.schema(
    [
        ("outcome", pa.int32()),
        ("value", pa.string()),
        ("rule", pa.int32()),
        ("is_divided", pa.bool_()),
        ("receivers", pa.list_(pa.string())),
        ("weights", pa.list_(pa.int64())),
        ("shares", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class HandedOn:
    """What the value ``source`` hands on: by UTC day, to whom (ascending) and in which proportions."""

    source: str
    by_day: Mapping[date, Sequence[tuple[str, int]]]


@dataclass(frozen=True)
class UsedCategory:
    """A category of a query: its place, its assignments, and how its values hand on what they have, in order."""

    place: int
    assignments: Assignments
    handovers: tuple[HandedOn, ...] = ()

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
    def shares(self) -> str:
        """The column of the shares of the receivers of a split, as text."""
        return f"shares_{self.place}"

    @property
    def is_divided(self) -> str:
        """The column that tells whether a row is split, or handed on by its value."""
        return f"is_divided_{self.place}"


@dataclass(frozen=True)
class Joined:
    """The table of a category's assignments, the condition (SQL) by which they fit a row of ``facts``, and whether some
    rows are divided."""

    table: str
    condition: str
    divides: bool

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
    made_of = _MadeOf(assignments.of(cursor, partials, scan), frozenset(each.source for each in used.handovers))
    if cursor.made_of.get(table) != made_of:
        _make(cursor, used, table, made_of)
        cursor.made_of[table] = made_of
    clauses = [
        f"of_{used.place}_{name} IS NOT DISTINCT FROM facts.{column}"
        for name, column in zip(assignments.subjects, assignments.columns, strict=True)
    ]
    if made_of.assigned.are_dated:
        clauses += [f"facts.date >= first_{used.place}", f"facts.date < end_{used.place}"]
    return Joined(table, " AND ".join(clauses) or "TRUE", made_of.divides)


@dataclass(frozen=True)
class _MadeOf:
    """What a table of assignments is made of: these very assignments, and the values that hand on."""

    assigned: Assigned
    sources: frozenset[str]

    @property
    def divides(self) -> bool:
        """Whether some rows are divided."""
        return any(_is_divided(outcome, self.sources) for outcome in self.assigned.outcomes)


def _make(cursor: Cursor, used: UsedCategory, table: str, made_of: _MadeOf) -> None:
    place, assigned = used.place, made_of.assigned
    outcomes = outcome_table(assigned, made_of.sources)
    cursor.register(f"periods_{place}", assigned.periods)
    cursor.register(f"outcomes_{place}", outcomes)
    own = "".join(f"{name} AS of_{place}_{name}, " for name in used.assignments.subjects)
    receivers, weights = used.parts
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE {table} AS
            SELECT {own}first_day AS first_{place}, end_day AS end_{place}, value AS {used.value},
                   rule AS {used.rule}, is_divided AS {used.is_divided},
                   receivers AS {receivers}, weights::HUGEINT[] AS {weights}, shares AS {used.shares}
            FROM periods_{place} JOIN outcomes_{place} USING (outcome)"""
    )


def outcome_table(assigned: Assigned, sources: Collection[str] = ()) -> pa.Table:
    """Return the outcomes of assignments: the value, or the receivers of a split with their weights. What is split, or
    belongs to one of the ``sources`` that hand on what they have, is divided."""
    rows = []
    for place, outcome in enumerate(assigned.outcomes):
        values, weights = [value for value, _ in outcome.parts], [weight for _, weight in outcome.parts]
        is_split = len(values) > 1
        is_divided = _is_divided(outcome, sources)
        rows.append(
            {
                "outcome": place,
                "value": values[0],
                "rule": outcome.rule,
                "is_divided": is_divided,
                "receivers": values if is_split else None,
                "weights": weights if is_split else None,
                "shares": [share_text(weight, sum(weights)) for weight in weights] if is_split else None,
            }
        )
    return pa.Table.from_pylist(rows, _OUTCOMES)


def _is_divided(outcome: Outcome, sources: Collection[str]) -> bool:
    return len(outcome.parts) > 1 or outcome.parts[0][0] in sources


def share_text(weight: int, total: int) -> str:
    """Return the share of a part as a decimal number.

    >>> share_text(3, 5), share_text(1, 1)
    ('0.6', '1')
    """
    return f"{(Decimal(weight) / total).normalize():f}"
