"""Sums of chargebacks by some columns, of one period or of two: what breakdowns and flows are made of.

They are added up from partial aggregates where one set of these has every column that is named. Else the rows are
summed by dimension first: a row's dimension decides everything that it can be filtered and grouped by, but its
environment, so that this is a scan of numbers; texts, tags and filters then concern some thousand sums. Where a tag
that is asked for has dates, the rows are summed by dimension and UTC day.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from chargeback.errors import StorageError
from chargeback.model.chargeback import DIMENSION_COLUMNS, USAGE_COST
from chargeback.model.days import InstantRange
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import PLACES
from chargeback.store.facts.tables import DIMENSIONS_TABLE
from chargeback.store.queries.aggregate import columns_of, joins_of
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.partials import COUNTS, ONCE, ROW_COUNT, Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.sql_format import FINE, exact, named

#: What costs can be grouped and filtered by, beside tags and cost categories: what a dimension and its environment
#: decide.
COST_COLUMNS: Final = CHARGEBACKS.groups

_AMOUNTS: Final = [name for name in CHARGEBACKS.sums if name not in COUNTS]
_FINE_SUMS: Final = [f"{name}{FINE}" for name in _AMOUNTS]
_TYPES: Final = (
    dict.fromkeys(_AMOUNTS, "DECIMAL(38, 12)") | dict.fromkeys(_FINE_SUMS, "HUGEINT") | dict.fromkeys(COUNTS, "BIGINT")
)
_UNOWNED: Final = f"identity_id = '{UNALLOCATED}'"
# The sums of a dimension, as SQL over its total and its number of rows.
_OF_DIMENSION: Final = {
    "total": "total",
    "used": f"CASE WHEN cost_type = '{USAGE_COST}' THEN total ELSE 0 END",
    "unowned": f"CASE WHEN {_UNOWNED} THEN total ELSE 0 END",
    "unowned_rows": f"CASE WHEN {_UNOWNED} THEN row_count ELSE 0 END",
    ROW_COUNT: "row_count",
}


class CostSums:
    """The sums of the selected rows of each of some ``windows`` (period 0, 1, …), by what is named in ``by``.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    def __init__(
        self, reader: TenantReader, selection: Selection, windows: Sequence[InstantRange], by: Sequence[str]
    ) -> None:
        """Check what is asked for; nothing is read.

        Raises:
            ValueError: costs cannot be filtered so.
        """
        unknown = [each.column for each in selection.columns if each.column not in COST_COLUMNS]
        if unknown:
            raise ValueError(f"costs cannot be filtered by {', '.join(unknown)}")
        self.keys = reader.group_keys(CHARGEBACKS, by)
        self._reader = reader
        self._selection = selection
        self._windows = windows
        self._by_dimension: set[str] = set()

    def selected(self, period: int) -> Selection:
        """Return the selection of the rows of a period."""
        return replace(self._selection, window=self._windows[period])

    def together(self) -> list[list[int]]:
        """Return the places in ``by`` in groups that one set of partial aggregates answers, or none does."""
        groups: dict[tuple[str, ...] | None, list[int]] = {}
        for number, key in enumerate(self.keys):
            sql = " ".join([key.column, key.joins, *key.reads])
            groups.setdefault(self._reader.covering(CHARGEBACKS, self._selection, sql), []).append(number)
        return list(groups.values())

    def collect(
        self,
        table: str,
        numbers: Sequence[int],
        *,
        also: tuple[ColumnFilter, ...] = (),
        periods: Sequence[int] | None = None,
    ) -> None:
        """Make the table of the sums by the named places in ``by``, of some ``periods`` or of all; ``also`` are further
        filters.

        It has the columns ``period``, ``d0``, ``d1``, … for the places, the sums of the dataset with their further
        digits (see :func:`sum_where`), the number of rows, and that of the rows of which it has the first part (cost
        categories divide some).
        """
        keys = [self.keys[number] for number in numbers]
        columns = [
            "period INTEGER",
            *(f"d{number} VARCHAR" for number in numbers),
            *(f"{name} {kind}" for name, kind in _TYPES.items()),
        ]
        self._reader.cursor.run(f"CREATE OR REPLACE TEMP TABLE {table} ({', '.join(columns)})")
        for period in range(len(self._windows)) if periods is None else periods:
            selection = self.selected(period)
            selection = replace(selection, columns=selection.columns + also)
            if self._reader.days_of(CHARGEBACKS, selection) is None:
                continue
            texts = columns_of(keys), joins_of(keys)
            insert = partial(self._insert, table, period, selection, *texts)
            self._reader.add_up(CHARGEBACKS, selection, " ".join(texts), insert)

    def _insert(self, table: str, period: int, selection: Selection, columns: str, joins: str, source: Addends) -> None:
        relation, condition, sums = source.relation, source.condition, source.sums
        if not source.are_partial:
            condition = self._reader.condition(CHARGEBACKS, selection)
            relation = self._dimensions(period, by_day=_names_day(f"{joins} {condition.sql}"))
            sums = {name: f"sum({sql})" for name, sql in _OF_DIMENSION.items()}
        sums = {ONCE: sums[ROW_COUNT], **dict.fromkeys(_FINE_SUMS, "0::HUGEINT"), **sums}
        self._reader.cursor.run(
            f"""INSERT INTO {table} SELECT {period}, {columns}, {named({name: sums[name] for name in _TYPES})}
                FROM {relation} AS facts {joins} WHERE {condition.sql} GROUP BY ALL""",
            condition.parameters,
        )

    def _dimensions(self, period: int, *, by_day: bool) -> str:
        """Return the table of the sums of a period by dimension and environment, and day; it is made once."""
        table = f"dimensions_of_{period}{'_by_day' if by_day else ''}"
        if table in self._by_dimension:
            return table
        # Filters, also those of a scope, are a matter of the sums.
        scan = self._reader.unscoped().scan(CHARGEBACKS, Selection(self._windows[period]))
        condition = scan.condition()
        register = [file for file in self._reader.snapshot(DIMENSIONS_TABLE).files if file.rows]
        keys = f"dimension_id, environment_id{', date' if by_day else ''}"
        texts = ", ".join(DIMENSION_COLUMNS)
        nothing = ", ".join(f"NULL::VARCHAR AS {name}" for name in DIMENSION_COLUMNS)
        known = "read_parquet($register)" if register else f"(SELECT NULL::BIGINT AS dimension_id, {nothing})"
        self._reader.cursor.run(
            f"""CREATE OR REPLACE TEMP TABLE {table} AS
                WITH sums AS MATERIALIZED (
                    SELECT {keys}, sum(amount) AS total, count(*) AS row_count
                    FROM {SOURCE} WHERE {condition.sql} GROUP BY ALL)
                SELECT * FROM sums LEFT JOIN (
                    SELECT DISTINCT dimension_id, {texts} FROM {known}
                    WHERE dimension_id IN (SELECT dimension_id FROM sums)) USING (dimension_id)""",
            condition.parameters | ({"register": register} if register else {}),
        )
        ((unknown,),) = self._reader.cursor.rows(f"SELECT count(*) FROM {table} WHERE identity_id IS NULL")
        if unknown:
            raise StorageError(f"the register of dimensions lacks {unknown} of those that were charged")
        self._by_dimension.add(table)
        return table


def sum_selected(
    reader: TenantReader, selection: Selection, windows: Sequence[InstantRange], by: Sequence[str]
) -> None:
    """Make the table ``selected`` of the sums by all of ``by``, see :meth:`CostSums.collect`.

    Raises:
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered so.
    """
    CostSums(reader, selection, windows, by).collect("selected", range(len(by)))


def _names_day(sql: str) -> bool:
    return re.search(r"\bdate\b", sql) is not None


def sum_where(condition: str, name: str = "total", places: int = PLACES) -> str:
    """Return the sum of the totals, or of other amounts, of some rows of a table of sums, with all digits, as SQL."""
    whole, fine = (f"coalesce(sum({column}) FILTER ({condition}), 0)" for column in (name, f"{name}{FINE}"))
    return exact(whole, fine, places)
