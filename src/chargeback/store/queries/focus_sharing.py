"""Shares a price or a quantity of a line among its rows in proportion to their amounts, exactly, as SQL.

With the rows of a line in order, ``upto`` the running sum of their amounts without signs and ``total`` the last of
these, a row's share of a whole number X is ⌊X · upto / total⌋ less that of the row before: the shares sum to X,
whatever is rounded. Everything is an integer (HUGEINT, at most 1.7 · 10³⁸).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: The digits that a product may have.
_DIGITS: Final = 37


def positions(shares: str, order: Sequence[str]) -> str:
    """Return a query that adds ``weight``, ``upto`` and ``total`` to the rows of ``shares``, which have a ``line_id``
    and ``units``; ``order`` are the columns that tell the rows of a line apart.

    Of a line that costs nothing the first row has everything.
    """
    return f"""
        SELECT *, sum(weight) OVER (PARTITION BY line_id ORDER BY place)::HUGEINT AS upto,
               sum(weight) OVER (PARTITION BY line_id)::HUGEINT AS total
        FROM (SELECT *, CASE WHEN charged = 0 THEN (place = 1)::HUGEINT ELSE abs(units) END AS weight
        FROM (SELECT *, row_number() OVER (PARTITION BY line_id ORDER BY {", ".join(order)}) AS place,
                     sum(abs(units)) OVER (PARTITION BY line_id) AS charged FROM {shares}))"""


def divisor(*wholes: str) -> str:
    """Return by what ``upto`` and ``total`` are divided, so that no product with one of some whole numbers is too
    large; what is shared by the same divisor is shared in the same proportions."""
    longest = f"greatest({', '.join(f'length(coalesce(abs({whole}), 0)::VARCHAR)' for whole in wholes)})"
    digits = "length(total::VARCHAR)"
    return f"('1' || repeat('0', least(greatest({digits} + {longest} - {_DIGITS}, 0), {digits} - 1)))::HUGEINT"


def shared(whole: str, divided_by: str) -> str:
    """Return the share of a row in a whole number; null if that is null."""
    upto, before, total = (f"({each} // {divided_by})" for each in ("upto", "(upto - weight)", "total"))
    return f"(sign({whole}) * ((abs({whole}) * {upto}) // {total} - (abs({whole}) * {before}) // {total}))"


def decimal_of(units: str, places: int) -> str:
    """Return the DECIMAL of a whole number of 10⁻ᵖˡᵃᶜᵉˢ."""
    return f"({units}::DECIMAL(38, 0) * 0.{'0' * (places - 1)}1::DECIMAL({places}, {places}))"


def units_of(number: str) -> str:
    """Return a DECIMAL(38, 12) as a whole number of 10⁻¹²."""
    return f"replace(({number})::VARCHAR, '.', '')::HUGEINT"
