"""The exact split: integers of 10⁻¹² by largest remainder.

A cost of ``units`` is split by weights ``w`` with the total ``W``: each identity gets ``⌊units × w ÷ W⌋``, and the
remaining units go, one each, to the largest remainders, ties by ascending id. The absolute value is split and the sign
restored, so a refund is split exactly as the charge it refunds. The shares sum exactly to the units.

Python's integers have no largest value, and at this size their division is faster than a database's 128-bit one (by
half, for a day of a million rows).
"""

from __future__ import annotations

from collections.abc import Sequence


def split_exactly(units: int, weights: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Split ``units`` (of either sign) by positive ``(id, weight)``; ids are unique. Return the shares in the order of
    ``weights``.

    Raises:
        ValueError: there are no weights, or a weight is not positive.

    >>> split_exactly(-100, [("a", 1), ("b", 1), ("c", 1)])
    [('a', -34), ('b', -33), ('c', -33)]
    """
    by_id = sorted(weights)
    shares = dict(zip([name for name, _ in by_id], split_in_order(units, [w for _, w in by_id]), strict=True))
    return [(name, shares[name]) for name, _ in weights]


def split_in_order(units: int, weights: Sequence[int]) -> list[int]:
    """Return the shares of identities that are given only by their positive weights, in ascending order of their ids.

    Raises:
        ValueError: there are no weights, or a weight is not positive.

    >>> split_in_order(100, [2, 1])
    [67, 33]
    """
    if not weights or min(weights) <= 0:
        raise ValueError("a split needs at least one recipient, and positive weights")
    total, magnitude = sum(weights), abs(units)
    products = [magnitude * weight for weight in weights]
    shares = [product // total for product in products]
    if left := magnitude - sum(shares):
        remainders = [product - share * total for product, share in zip(products, shares, strict=True)]
        # A reversed sort keeps the order of equals: of equal remainders the first id comes first.
        for favoured in sorted(range(len(weights)), key=remainders.__getitem__, reverse=True)[:left]:
            shares[favoured] += 1
    return shares if units >= 0 else [-share for share in shares]


def split_evenly(units: int, recipients: int) -> tuple[int, int, int]:
    """Return ``(favoured, larger, smaller)``: of ``recipients`` identities of equal weight, the first ``favoured`` ids
    get the ``larger`` share and all others the ``smaller`` one.

    >>> split_evenly(-100, 3)
    (1, -34, -33)
    """
    smaller, favoured = divmod(abs(units), recipients)
    sign = -1 if units < 0 else 1
    return favoured, sign * (smaller + 1), sign * smaller
