"""Sums in another currency: those of each UTC month, times the rate of the month, as SQL.

A product of a sum, DECIMAL(38, 12), and a rate, DECIMAL(18, 8), is a DECIMAL(38, 20): nothing is rounded. The further
digits of sums where cost is handed on are whole numbers, and are multiplied by the rate in units of 10⁻⁸: they follow
the twentieth decimal place as they followed the twelfth.
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
from chargeback.store.queries.sql_format import FINE, fine_rest, fine_wholes, named, one_of

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
    """Convert the ``amounts`` of a table of sums, with their further digits; its column ``period`` has the place of
    each row's part, and then the number of its window."""
    if not any(part.rate for part in parts):
        return
    values = ", ".join(f"({number}, {part.period}, {_literals(part.rate)})" for number, part in enumerate(parts))
    sums = named({name: sql for each in amounts for name, sql in times_rate(each, is_fine=True).items()})
    cursor.run(
        f"""CREATE OR REPLACE TEMP TABLE {table} AS
            SELECT * EXCLUDE (part, of_period, rate, rate_units) REPLACE (of_period AS period, {sums})
            FROM {table} JOIN (VALUES {values}) AS parts(part, of_period, rate, rate_units) ON part = period"""
    )


def rates_relation(rates: Rates) -> str:
    """Return rates as SQL after FROM, with the columns ``rate_month``, ``rate`` and ``rate_units``."""
    values = ", ".join(f"(DATE '{month}', {_literals(rate)})" for month, rate in sorted(rates.items()))
    return f"(VALUES {values}) AS rates(rate_month, rate, rate_units)"


def times_rate(name: str, *, is_fine: bool) -> dict[str, str]:
    """Return the column of a sum times the rate, as SQL over both; if it ``is_fine``, also that of its further digits.
    These are made small before, so that the product fits."""
    if not is_fine:
        return {name: f"({name} * rate)"}
    fine = f"{name}{FINE}"
    return {name: f"(({name} + {one_of(fine_wholes(fine))}) * rate)", fine: f"({fine_rest(fine)} * rate_units)"}


def sums_sql(source: Addends, keys: str, joins: str, rates: Rates | None) -> str:
    """Return the SELECT of the sums of what an aggregate adds up, by ``keys``, which are SQL over it and ``joins``, or
    empty; with ``rates`` in another currency."""
    columns = [keys] if keys else []
    rows = f"FROM {source.relation} AS facts {joins} WHERE {source.condition.sql}"
    if not rates:
        return f"SELECT {', '.join([*columns, named(source.sums)])} {rows} {'GROUP BY ALL' if keys else ''}"
    by_month = f"SELECT {', '.join([*columns, MONTH, named(source.sums)])} {rows} GROUP BY ALL"
    sums = {name: f"sum({name})::BIGINT" for name in source.sums if name in COUNTS}
    for name in source.amounts:
        sums |= {each: f"sum({sql})" for each, sql in times_rate(name, is_fine=name in source.fine).items()}
    kept = [f"* EXCLUDE (rate_month, rate, rate_units, {', '.join(sums)})"] if keys else []
    return f"""SELECT {", ".join([*kept, named(sums)])}
        FROM ({by_month}) JOIN {rates_relation(rates)} USING (rate_month) {"GROUP BY ALL" if keys else ""}"""


def places_of(rates: Rates | None) -> int:
    """Return how many decimal places sums have before their further digits."""
    return CONVERTED_PLACES if rates else PLACES


def _literals(rate: Decimal | None) -> str:
    """Return a rate, and the same in units of 10⁻⁸."""
    if rate is None:
        return "NULL, NULL"
    return f"{rate:f}::DECIMAL(18, {RATE_PLACES}), {int(rate.scaleb(RATE_PLACES))}::BIGINT"
