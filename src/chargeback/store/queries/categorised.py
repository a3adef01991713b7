"""Sums by cost category: each row belongs to a value, is split over several, or is handed on from one to others.

What belongs to one value is summed like everything else, from partial aggregates where these answer. What is divided is
divided row by row, in whole units of 10⁻¹² by largest remainder: however the parts are summed up later, they have the
sum of the rows. The result is a table that takes the place of partial aggregates: it has the columns that the query
names, ``category_<place>`` and ``rule_<place>`` for each category, and the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from chargeback.errors import StorageError
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.queries.category_join import HandedOn, UsedCategory, join_assigned
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.division_sql import DIRECT, IN, OUT, handed_on, split_pieces
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import ALWAYS, FLOWS, ONCE, ROW_COUNT, Addends, add_up, columns_named, sums_of
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.sql_format import named

_EVERYTHING: Final = Condition()
_MONEY: Final = "DECIMAL(38, 12)"
_UNIT: Final = "0.000000000001::DECIMAL(12, 12)"
_NOTHING_SHARED: Final = {"shared_in": f"0::{_MONEY}", "shared_out": f"0::{_MONEY}"}


@dataclass(frozen=True)
class CategoryQuery:
    """The rows of a scan, beside the categories that a query uses: ``wanted`` is a condition on their columns."""

    cursor: Cursor
    partials: PartialFiles | None
    dataset: Dataset
    scan: Scan
    used: tuple[UsedCategory, ...]
    wanted: Condition = _EVERYTHING


def units_of(dataset: Dataset) -> str:
    """Return the amount of a row in units of 10⁻¹², as SQL."""
    return f"replace({dataset.amount}::VARCHAR, '.', '')::HUGEINT"


def amount_of(units: str) -> str:
    """Return the amount of some units, as SQL."""
    return f"{units}::DECIMAL(38, 0) * {_UNIT}"


def categorised(query: CategoryQuery, columns: Sequence[str]) -> Addends:
    """Return the sums of a query by some columns of its dataset and by its categories.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    of_categories = [name for each in query.used for name in (each.value, each.rule)]
    keys = [*ALWAYS, *(name for name in columns if name not in ALWAYS), *of_categories]
    table = f"categorised_{'_'.join(str(each.place) for each in query.used)}"
    joined = [join_assigned(query.cursor, query.partials, query.scan, each) for each in query.used]
    joins = " ".join(each.join for each in joined)
    dividing = [each for each, found in zip(query.used, joined, strict=True) if found.divides]
    _sum_undivided(query, table, keys, joins, dividing)
    if dividing and query.scan.files:
        _sum_divided(query, table, keys, joins, dividing)
    missing = " OR ".join(f"{each.value} IS NULL" for each in query.used)
    ((rows, lost),) = query.cursor.rows(f"SELECT count(*), count(*) FILTER ({missing}) FROM {table}")
    if lost:
        raise StorageError("some rows have no value of a cost category: their files changed; ask again")
    sums = sums_of([*query.dataset.sums, *FLOWS.values(), ROW_COUNT, ONCE])
    return Addends(table, Condition(), sums, are_partial=True, rows=rows)


def _sum_undivided(
    query: CategoryQuery, table: str, keys: Sequence[str], joins: str, dividing: Sequence[UsedCategory]
) -> None:
    """Make the table, of what belongs to one value of each category."""
    whole = Condition(tuple(f"{each.is_divided} IS NOT TRUE" for each in dividing))

    def _make(source: Addends) -> None:
        condition = source.condition & query.wanted & whole
        sums = {**source.sums, ONCE: source.sums[ROW_COUNT], **_NOTHING_SHARED, "direct": source.sums["total"]}
        query.cursor.run(
            f"""CREATE OR REPLACE TEMP TABLE {table} AS SELECT {", ".join(keys)}, {named(sums)}
                FROM {source.relation} AS facts {joins} WHERE {condition.sql} GROUP BY ALL""",
            condition.parameters,
        )

    add_up(query.cursor, query.partials, query.dataset, query.scan, f"{' '.join(keys)} {joins}", _make)


def _sum_divided(
    query: CategoryQuery, table: str, keys: Sequence[str], joins: str, dividing: Sequence[UsedCategory]
) -> None:
    """Insert the parts of what is divided."""
    amount, sums = query.dataset.amount, query.dataset.sums
    condition = query.scan.condition()
    read = columns_named(query.dataset, f"{amount} {' '.join(keys)} {' '.join(sums.values())}") | {*ALWAYS}
    assigned = [name for each in query.used for name in (each.value, each.rule)]
    assigned += [name for each in dividing for name in each.parts]
    pieces = f"""
        SELECT row_number() OVER () AS row, {", ".join(f"facts.{name}" for name in sorted(read))},
               {", ".join(assigned)}, {units_of(query.dataset)} AS units, '{DIRECT}' AS kind, TRUE AS is_held,
               TRUE AS is_first, TRUE AS is_new
        FROM {SOURCE} AS facts {joins}
        WHERE {condition.sql} AND ({" OR ".join(each.is_divided for each in dividing)})"""
    stages = {"pieces": pieces}
    for each in dividing:
        values = [other.value for other in query.used]
        stages |= dict(_stages(query.cursor, each, values, next(reversed(stages))))
    following = [*list(stages)[1:], ""]
    made = ", ".join(
        f"{name} AS {_kept(after)} ({stages[name]})" for name, after in zip(stages, following, strict=True)
    )
    # Of the pieces of a row with one value, the row is counted once.
    rows = "count(CASE WHEN is_new THEN 1 END)" if _know_new(dividing) else "count(DISTINCT row)"
    found = {name: sql.replace("count(*)", rows) for name, sql in sums.items()}
    found |= {ROW_COUNT: rows, ONCE: "count(*) FILTER (is_first)"}
    found |= {
        "direct": f"coalesce(sum({amount}) FILTER (kind = '{DIRECT}'), 0)::{_MONEY}",
        "shared_in": f"coalesce(sum({amount}) FILTER (kind = '{IN}'), 0)::{_MONEY}",
        "shared_out": f"coalesce(-sum({amount}) FILTER (kind = '{OUT}'), 0)::{_MONEY}",
    }
    # The piece that stands for a row may be one that is not wanted.
    first = ", row_number() OVER (PARTITION BY row) = 1 AS is_first" if query.wanted.clauses else ""
    sources = {_source(each, number): by.source for each in dividing for number, by in enumerate(each.handovers)}
    query.cursor.run(
        f"""INSERT INTO {table} BY NAME WITH {made}
            SELECT {", ".join(keys)}, {named(found)} FROM (
                SELECT * REPLACE ({amount_of("units")} AS {amount}{first})
                FROM {next(reversed(stages))} WHERE {query.wanted.sql})
            GROUP BY ALL""",
        condition.parameters | query.wanted.parameters | sources,
    )


def _know_new(dividing: Sequence[UsedCategory]) -> bool:
    """Return whether pieces know that the row has no other with their value: where values hand on once at most."""
    return len(dividing) == 1 and len(dividing[0].handovers) <= 1


def _kept(after: str) -> str:
    """Return whether the result of a stage is kept in memory: where the stage ``after`` it reads it several times."""
    return "NOT MATERIALIZED" if not after or after.endswith("_found") else "MATERIALIZED"


def _stages(cursor: Cursor, used: UsedCategory, values: Sequence[str], last: str) -> Iterator[tuple[str, str]]:
    """Yield (name, query) of the steps that divide the pieces ``last`` among the values of a category."""
    before = f"split_{used.place}"
    yield before, split_pieces(last, used.value, *used.parts)
    for number, handover in enumerate(used.handovers):
        proportions = f"proportions_{used.place}_{number}"
        cursor.register(proportions, _proportions(handover))
        source = f"${_source(used, number)}"
        of_piece = () if number == 0 else ("row", *values)
        for name, sql in handed_on(before, used.value, used.parts[0], source, proportions, of_piece):
            yield f"{before}_{name}", sql
        before = f"{before}_handed"


def _source(used: UsedCategory, number: int) -> str:
    return f"source_{used.place}_{number}"


def _proportions(handover: HandedOn) -> pa.Table:
    days = sorted(handover.by_day)
    parts = [handover.by_day[day] for day in days]
    return pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "receivers": pa.array([[value for value, _ in each] for each in parts], pa.list_(pa.string())),
            "weights": pa.array([[weight for _, weight in each] for each in parts], pa.list_(pa.int64())),
        }
    )
