"""The description of a query for sums, and the relation with its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, TypeVar

import pyarrow as pa

from chargeback.model.currency import CONVERTED_PLACES, Rates
from chargeback.model.days import DayRange, InstantRange
from chargeback.model.money import PLACES
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.keys import Key
from chargeback.store.queries.partials import COUNTS
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import FINE, exact, in_parts

T = TypeVar("T")

TOTAL: Final = "total"


@dataclass(frozen=True)
class Sums:
    """The sums of the selected rows of a dataset by some keys.

    Attributes:
        by: the keys; without any, everything is one sum.
        of: the names of the sums: the measures of the dataset, the number of rows, what cost categories reallocate.
        rates: of the currency of the amounts, where it is another than the bill's.
        periods: windows that take the place of that of the selection; sums are then also by ``period`` (0, 1, …).
        days: the only days whose files are read.
    """

    dataset: Dataset
    selection: Selection
    by: tuple[Key, ...] = ()
    of: tuple[str, ...] = (TOTAL,)
    rates: Rates | None = None
    periods: tuple[InstantRange, ...] = ()
    days: Collection[date] | None = None

    @property
    def places(self) -> int:
        """How many decimal places amounts have before their further digits."""
        return CONVERTED_PLACES if self.rates else PLACES

    @property
    def amounts(self) -> tuple[str, ...]:
        """The sums that are amounts."""
        return tuple(name for name in self.of if name not in COUNTS)


#: Runs something with the SQL of a relation and the values that it names.
Run = Callable[[Callable[[str, Mapping[str, object]], Any]], Any]


@dataclass(frozen=True)
class SumRelation:
    """The sums of a question, as the relation ``sums`` of further SQL.

    It has the columns of the keys, those of the sums and, where the question ``is_fine``, the further digits of the
    amounts; what shows an amount takes both (:meth:`amount`, :meth:`total`). It is read whenever it is used; what it is
    added up from is chosen once.

    Attributes:
        days: the UTC days that have rows of the window, without its filters; None if none has.
        is_whole: it has all groups, not only the newest ones.
        are_few: there are no more groups than were asked for, and they are not kept in a table: read them once.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    cursor: Cursor
    question: Sums
    is_fine: bool
    days: DayRange | None
    run: Run = field(repr=False)
    keep: Callable[[int], SumRelation] | None = field(default=None, repr=False)
    is_whole: bool = True
    are_few: bool = False

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query of ``sums``."""
        found: list[tuple[Any, ...]] = self.run(
            lambda sums, its: self.cursor.rows(_with(sums, sql), {**its, **(parameters or {})})
        )
        return found

    def batches(self, sql: str, parameters: Mapping[str, object], size: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query of ``sums``, computed while they are read."""
        yield from self.run(lambda sums, its: self.cursor.batches(_with(sums, sql), {**its, **parameters}, size=size))

    def table(self, name: str, sql: str, parameters: Mapping[str, object] | None = None) -> str:
        """Make a temporary table of a query of ``sums``; return its name, which begins with ``name``."""
        table = self.cursor.new_name(name)
        self.run(
            lambda sums, its: self.cursor.run(
                f"CREATE OR REPLACE TEMP TABLE {table} AS {_with(sums, sql)}", {**its, **(parameters or {})}
            )
        )
        return table

    def arrow(self, sql: str) -> pa.Table:
        """Return the rows of a query of ``sums`` as columns."""
        found: pa.Table = self.run(lambda sums, its: self.cursor.table(_with(sums, sql), its))
        return found

    def insert(self, table: str, sql: str) -> None:
        """Add the rows of a query of ``sums`` to a table, by the names of its columns."""
        self.run(lambda sums, its: self.cursor.run(f"INSERT INTO {table} BY NAME {_with(sums, sql)}", its))

    def newest(self, most: int) -> SumRelation:
        """Return the same sums, read once; if there are more than ``most`` groups, at least that many of the newest
        units of time, each of them whole."""
        return self if self.keep is None else self.keep(most)

    def amount(self, *names: str) -> str:
        """Return the first of some amounts of a group less the others, with all digits, as SQL; of the total if none is
        named."""
        names = names or (TOTAL,)
        whole, fine = _less(names), _less([f"{name}{FINE}" for name in names])
        return in_parts(whole, fine) if self.is_fine else whole

    def total(self, *names: str, where: str = "TRUE") -> str:
        """Return the sum of the same over the groups of a condition, with all digits, as SQL; null without a group."""
        names = names or (TOTAL,)
        chosen = "" if where == "TRUE" else f" FILTER ({where})"
        sums = [f"sum({name}){chosen}" for name in names]
        fine = [f"sum({name}{FINE}){chosen}" for name in names]
        return in_parts(_less(sums), _less(fine)) if self.is_fine else _less(sums)

    def total_or_zero(self, name: str = TOTAL, *, where: str = "TRUE") -> str:
        """Return the same of one amount, with all digits as two numbers; zero without a group."""
        whole, fine = (f"coalesce(sum({column}) FILTER ({where}), 0)" for column in (name, f"{name}{FINE}"))
        return exact(whole, fine if self.is_fine else None, self.question.places)


def _with(sums: str, sql: str) -> str:
    return f"WITH sums AS NOT MATERIALIZED ({sums}) {sql}"


def _less(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({' - '.join(names)})"
