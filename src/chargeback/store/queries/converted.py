"""Sums in another currency: those of each UTC month, times the rate of the month, as SQL.

A product of a sum, DECIMAL(38, 12), and a rate, DECIMAL(18, 8), is a DECIMAL(38, 20): nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from chargeback.model.currency import CONVERTED_PLACES, RATE_PLACES, Rates, month_start, months_between
from chargeback.model.days import InstantRange, start_of_day
from chargeback.model.money import PLACES
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import COUNTS, Addends
from chargeback.store.queries.sql_format import named

#: The first day of the UTC month of a row, as SQL.
MONTH: Final = "date_trunc('month', date)::DATE AS rate_month"


@dataclass(frozen=True)
class MonthWindow:
    """The part of a window, which has the number ``period``, that lies in one UTC month, and the rate of the month;
    without a rate, the whole window."""

    period: int
    window: InstantRange
    rate: Decimal | None = None


def month_windows(windows: Sequence[InstantRange], rates: Rates | None) -> list[MonthWindow]:
    """Return windows in parts of one UTC month each; without ``rates`` as they are. Months without a rate are left out:
    they have no rows."""
    if rates is None:
        return [MonthWindow(period, window) for period, window in enumerate(windows)]
    parts = []
    for period, window in enumerate(windows):
        for days in months_between(window.days()) if window.start < window.end else ():
            start, end = max(start_of_day(days.start), window.start), min(start_of_day(days.end), window.end)
            rate = rates.get(month_start(days.start))
            if rate is not None:
                parts.append(MonthWindow(period, InstantRange(start, end), rate))
    return parts


def convert_table(cursor: Cursor, table: str, parts: Sequence[MonthWindow], amounts: Sequence[str]) -> None:
    """Convert the ``amounts`` of a table of sums whose column ``period`` has the place of each row's part; then it has
    the number of its window."""
    if not any(part.rate for part in parts):
        return
    values = ", ".join(f"({number}, {part.period}, {_literal(part.rate)})" for number, part in enumerate(parts))
    sums = ", ".join(f"({name} * rate) AS {name}" for name in amounts)
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE {table} AS
            SELECT * EXCLUDE (part, of_period, rate) REPLACE (of_period AS period, {sums})
            FROM {table} JOIN (VALUES {values}) AS parts(part, of_period, rate) ON part = period"""
    )


def rates_relation(rates: Rates) -> str:
    """Return rates as SQL after FROM, with the columns ``rate_month`` and ``rate``."""
    values = ", ".join(f"(DATE '{month}', {_literal(rate)})" for month, rate in sorted(rates.items()))
    return f"(VALUES {values}) AS rates(rate_month, rate)"


def sums_sql(source: Addends, keys: str, joins: str, rates: Rates | None) -> str:
    """Return the SELECT of the sums of what an aggregate adds up, by ``keys``, which are SQL over it and ``joins``, or
    empty; with ``rates`` in another currency."""
    columns = [keys] if keys else []
    rows = f"FROM {source.relation} AS facts {joins} WHERE {source.condition.sql}"
    if not rates:
        return f"SELECT {', '.join([*columns, named(source.sums)])} {rows} {'GROUP BY ALL' if keys else ''}"
    by_month = f"SELECT {', '.join([*columns, MONTH, named(source.sums)])} {rows} GROUP BY ALL"
    sums = {name: f"sum({name})::BIGINT" if name in COUNTS else f"sum({name} * rate)" for name in source.sums}
    kept = [f"* EXCLUDE (rate_month, rate, {', '.join(sums)})"] if keys else []
    return f"""SELECT {", ".join([*kept, named(sums)])}
        FROM ({by_month}) JOIN {rates_relation(rates)} USING (rate_month) {"GROUP BY ALL" if keys else ""}"""


def places_of(rates: Rates | None) -> int:
    """Return how many decimal places sums have."""
    return CONVERTED_PLACES if rates else PLACES


def _literal(rate: Decimal | None) -> str:
    return f"{rate:f}::DECIMAL(18, {RATE_PLACES})"
