"""The exact split: integers of 10⁻¹² by largest remainder.

A cost of ``units`` is split by weights ``w`` with the total ``W``: everybody gets ``⌊units × w ÷ W⌋``, and what is
left goes, one unit each, to the largest remainders, ties by ascending id. The magnitude is split and the sign put
back, so a refund is split exactly as the charge it refunds. Nothing is lost: the shares sum to the units.
"""

from __future__ import annotations

from collections.abc import Sequence


def split_exactly(units: int, weights: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """``units`` (of either sign) split by positive ``(id, weight)``; ids are unique. The order of the ids is kept.

    Raises:
        ValueError: there is nobody to give anything to, or a weight is not positive.

    >>> split_exactly(-100, [("a", 1), ("b", 1), ("c", 1)])
    [('a', -34), ('b', -33), ('c', -33)]
    """
    total = sum(weight for _, weight in weights)
    if not weights or any(weight <= 0 for _, weight in weights):
        raise ValueError("a split needs at least one recipient, and positive weights")
    magnitude = abs(units)
    shares = {name: divmod(magnitude * weight, total) for name, weight in weights}
    left = magnitude - sum(quotient for quotient, _ in shares.values())
    by_remainder = sorted(shares, key=lambda name: (-shares[name][1], name))
    favoured = set(by_remainder[:left])
    sign = -1 if units < 0 else 1
    return [(name, sign * (shares[name][0] + (name in favoured))) for name, _ in weights]


#: The largest product that the form of the query engine's arithmetic may reach; beyond it, Python integers.
LARGEST_PRODUCT = 10**38


def split_sql(source: str) -> str:
    """The same split as one DuckDB query.

    ``source`` is a relation of (charge, id, units HUGEINT, weight HUGEINT > 0), each id once per charge, in which
    ``min(|units|, total weight) × largest weight`` stays below :data:`LARGEST_PRODUCT` for every charge. The answer
    has all columns of ``source`` and ``share`` HUGEINT.
    """
    return f"""
        WITH weighed AS (
            SELECT *, abs(units) AS magnitude, sum(weight) OVER (PARTITION BY charge) AS total FROM {source}
        ), divided AS (
            SELECT *,
                   (magnitude // total) * weight + ((magnitude % total) * weight) // total AS quotient,
                   ((magnitude % total) * weight) % total AS remainder
            FROM weighed
        ), ranked AS (
            SELECT *,
                   magnitude - sum(quotient) OVER (PARTITION BY charge) AS remaining,
                   row_number() OVER (PARTITION BY charge ORDER BY remainder DESC, id) AS rank
            FROM divided
        )
        SELECT * EXCLUDE (magnitude, total, quotient, remainder, remaining, rank),
               (CASE WHEN units < 0 THEN -1 ELSE 1 END)::HUGEINT
               * (quotient + CASE WHEN rank <= remaining THEN 1 ELSE 0 END) AS share
        FROM ranked
    """
