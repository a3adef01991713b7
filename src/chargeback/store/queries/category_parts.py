"""Rows and the values of cost categories: which rows a value has, and the parts of rows that are split.

Reallocation is not part of it: it concerns whole days, not rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from chargeback.allocation.split import split_in_order
from chargeback.model.dated import Period
from chargeback.model.money import from_units, parse_decimal, render, to_units
from chargeback.store.queries.assignments import UsedCategory, clauses_of, join_assigned, share_text
from chargeback.store.queries.categorised import CategoryQuery, divided, units_of
from chargeback.store.queries.datasets import METADATA
from chargeback.store.queries.scan import SOURCE, Condition
from chargeback.store.queries.sql_format import one_of

#: The column with a part's share of its row's amount, if the query has one category.
SHARE = "category_share"

#: A part of a row: its units, and its value of each category that selects rows.
_Piece = tuple[int, Mapping[str, str]]
#: The values of a row, ascending, and their weights.
_Weighed = tuple[list[str], list[int]]


def rows_with_parts(query: CategoryQuery) -> Condition:
    """Return the condition on a row of :data:`SOURCE` that some part of it is wanted, by the only category of a query.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    (used,) = query.used
    joined = join_assigned(query.cursor, query.partials, query.scan, used)
    receivers, _ = used.parts
    table = query.cursor.new_name("wanted")
    values = f"""SELECT * EXCLUDE ({used.value}), unnest(coalesce({receivers}, [{used.value}])) AS {used.value}
                 FROM {joined.table}"""
    matches = clauses_of(used, joined.are_dated, "")
    columns = frozenset(used.assignments.columns)
    # The day is that of the row, which alone has a column for it.
    of_row = query.wanted if query.wanted.reads else Condition()
    if not of_row.clauses:
        values = f"SELECT * FROM ({values}) WHERE {query.wanted.sql}"
    query.cursor.run(f"CREATE TEMP TABLE {table} AS {values}", {} if of_row.clauses else query.wanted.parameters)
    wanted = " AND ".join([*matches, *of_row.clauses]) or "TRUE"
    return Condition((f"EXISTS (SELECT 1 FROM {table} WHERE {wanted})",), of_row.parameters, columns | of_row.reads)


def parts_of_rows(query: CategoryQuery) -> tuple[str, Condition]:
    """Return the wanted rows in their order, as a relation (SQL) and its condition. What is split is one row for each
    of its parts, with the amount of that part and its :data:`SHARE`; each has the columns of the categories.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    joined = [join_assigned(query.cursor, query.partials, query.scan, each) for each in query.used]
    columns = [name for each in query.used for name in (each.value, *each.parts, each.share_texts)]
    condition = query.scan.condition()
    relation = (
        f"(SELECT stored.*, {', '.join(columns)}, {units_of(query.dataset.amount)} AS units, '1' AS {SHARE} "
        f"FROM {SOURCE} AS stored {' '.join(each.join for each in joined)} WHERE {condition.sql})"
    )
    for each, found in zip(query.used, joined, strict=True):
        if found.splits:
            relation = _divided_rows(relation, each)
    amount = query.dataset.amount
    relation = f"(SELECT * REPLACE ({one_of('units')} AS {amount}) FROM {relation})"
    return relation, query.wanted & Condition(parameters=condition.parameters)


def sums_of_parts(query: CategoryQuery) -> str:
    """Return the sum of the wanted parts of a row of :data:`SOURCE`, as SQL; these sums are kept in a temporary table.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    relation, condition = parts_of_rows(query)
    table = query.cursor.new_name("visible_parts")
    query.cursor.run(
        f"""CREATE TEMP TABLE {table} AS
            SELECT date AS of_day, file_row_number AS of_row, sum({query.dataset.amount}) AS visible
            FROM {relation} WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )
    return f"(SELECT visible FROM {table} WHERE of_day = date AND of_row = file_row_number)"


def _divided_rows(rows: str, used: UsedCategory) -> str:
    """Return ``rows`` with one row for each part of a split; those of one value stay where they are."""
    receivers, weights = used.parts
    listed = (
        f"(SELECT * REPLACE (coalesce({receivers}, [{used.value}]) AS {receivers}, "
        f"coalesce({weights}, [1]::HUGEINT[]) AS {weights}) FROM {rows})"
    )
    share = f"coalesce({used.share_texts}[list_position({receivers}, receiver)], '1')"
    return (
        f"(SELECT * EXCLUDE (receiver, share) REPLACE (receiver AS {used.value}, share AS units, {share} AS {SHARE}) "
        f"FROM ({divided(listed, receivers, weights)}))"
    )


def add_values(
    query: CategoryQuery,
    items: Sequence[dict[str, Any]],
    days: Sequence[date],
    keys: Sequence[str],
    shown: Collection[str],
    visible: Mapping[str, Mapping[Period, frozenset[str]]],
) -> None:
    """Add to rows of some UTC days, as the API shows them, the value of each ``shown`` category with its share of the
    amount. ``keys`` are the categories in ``used``.

    Where only some values of a category are ``visible``, a row is what is visible of it on its day: the amount and the
    values.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    amount = query.dataset.amount
    by_key = {key: _values_of_rows(query, each, items, days) for key, each in zip(keys, query.used, strict=True)}
    for number, item in enumerate(items):
        of_row = {key: values[number] for key, values in by_key.items()}
        its_day = days[number]
        on_day = {
            key: next(values for during, values in periods.items() if its_day in during)
            for key, periods in visible.items()
        }
        pieces = _visible_pieces(to_units(parse_decimal(item[amount])), of_row, on_day)
        if visible:
            item[amount] = render(from_units(sum(units for units, _ in pieces)))
        if shown:
            item["categories"] = {key: _shown_values(key, *of_row[key], pieces) for key in shown}


def _visible_pieces(units: int, of_row: Mapping[str, _Weighed], visible: Mapping[str, frozenset[str]]) -> list[_Piece]:
    """Return the parts of a row that are visible; without categories that decide it, the whole row is one."""
    pieces: list[_Piece] = [(units, {})]
    for key, wanted in visible.items():
        values, weights = of_row[key]
        pieces = [
            (share, {**labels, key: value})
            for whole, labels in pieces
            for value, share in zip(values, split_in_order(whole, weights), strict=True)
            if value in wanted
        ]
    return pieces


def _shown_values(
    key: str, values: Sequence[str], weights: Sequence[int], pieces: Sequence[_Piece]
) -> list[dict[str, str]]:
    """Return the values of one category of a row, with what they have of its visible pieces."""
    amounts: dict[str, int] = {}
    for units, labels in pieces:
        parts = [(labels[key], units)] if key in labels else zip(values, split_in_order(units, weights), strict=True)
        for value, share in parts:
            amounts[value] = amounts.get(value, 0) + share
    total = sum(weights)
    return [
        {"value": value, SHARE: share_text(weight, total), "amount": render(from_units(amounts[value]))}
        for value, weight in zip(values, weights, strict=True)
        if value in amounts
    ]


def _values_of_rows(
    query: CategoryQuery, used: UsedCategory, items: Sequence[dict[str, Any]], days: Sequence[date]
) -> list[_Weighed]:
    """Return the values of one category of each row, with their weights."""
    joined = join_assigned(query.cursor, query.partials, query.scan, used)
    rows = query.cursor.register(query.cursor.new_name("shown_rows"), _shown(used, items, days))
    receivers, weights = used.parts
    found = query.cursor.rows(
        f"""SELECT coalesce({receivers}, [{used.value}]), coalesce({weights}, [1]::HUGEINT[])
            FROM {rows} AS stored {joined.join} ORDER BY place"""
    )
    return [(values, [int(weight) for weight in of_row]) for values, of_row in found]


def _shown(used: UsedCategory, items: Sequence[dict[str, Any]], days: Sequence[date]) -> pa.Table:
    """The columns that rules see, of some rows."""
    columns = {
        name: pa.array([{**item.get(METADATA, {}), **item}.get(name) for item in items], pa.string())
        for name in used.assignments.columns
    }
    return pa.table({"place": pa.array(range(len(items))), "date": pa.array(days, pa.date32()), **columns})
