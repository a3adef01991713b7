"""How costs flow through several columns: from an environment to its resources to those who pay, for instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from chargeback.model.currency import Rates
from chargeback.model.days import InstantRange
from chargeback.store.queries.converted import convert_table, month_windows, places_of
from chargeback.store.queries.cost_sums import sum_selected, sum_where
from chargeback.store.queries.costs import Breakdown, break_down
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection


@dataclass(frozen=True)
class Link:
    """What flows from a value of one column (``source``, its place among the items; the others share the last place)
    to a value of the next column."""

    column: int
    source: int
    target: int
    amount: Decimal
    previous: Decimal


@dataclass(frozen=True)
class Flow:
    """The values of each column, and what flows between those of neighbouring columns."""

    columns: tuple[Breakdown, ...]
    links: tuple[Link, ...]


def flow(
    reader: TenantReader,
    selection: Selection,
    previous: InstantRange | None,
    by: Sequence[str],
    tops: Sequence[int],
    rates: Rates | None = None,
) -> Flow:
    """Return how the selected costs flow through the columns ``by``, of which ``tops`` values each are named; with
    ``rates`` in another currency.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    windows = [selection.window, *([] if previous is None else [previous])]
    parts = month_windows(windows, rates)
    sum_selected(reader, selection, [part.window for part in parts], by)
    cursor = reader.cursor
    convert_table(cursor, "selected", parts, ["total", "used"])
    places = places_of(rates)
    columns = tuple(break_down(cursor, "selected", each, tops[each[0]], places) for each in enumerate(by))
    links = [link for number in range(len(by) - 1) for link in _links(cursor, number, tops, places)]
    return Flow(columns, tuple(links))


def _links(cursor: Cursor, number: int, tops: Sequence[int], places: int) -> list[Link]:
    rows = cursor.rows(
        f"""SELECT least(source.rank - 1, {tops[number]}) AS source_place,
                   least(target.rank - 1, {tops[number + 1]}) AS target_place,
                   {sum_where("period = 0", places=places)} AS amount,
                   {sum_where("period = 1", places=places)} AS previous
            FROM selected
            JOIN ranked{number} AS source ON d{number} IS NOT DISTINCT FROM source.value
            JOIN ranked{number + 1} AS target ON d{number + 1} IS NOT DISTINCT FROM target.value
            GROUP BY ALL ORDER BY ALL"""
    )
    return [Link(number, *row) for row in rows]
