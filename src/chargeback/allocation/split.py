"""The exact split: integers of 10⁻¹² by largest remainder.

A cost of ``units`` is split by weights ``w`` with the total ``W``: each identity gets ``⌊units × w ÷ W⌋``, and the
remaining units go, one each, to the largest remainders, ties by ascending id. The absolute value is split and the sign
restored, so a refund is split exactly as the charge it refunds. The shares sum exactly to the units.

Python's integers have no largest value, and at this size their division is faster than a database's 128-bit one (by
half, for a day of a million rows). :func:`split_column` calculates large splits with the processor's 64-bit integers,
five times as fast, if the numbers fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import INTEGER, decimals_of, int64, integers_of, reinterpret
from chargeback.model.usage import QUANTITY

# With fewer weights, the fixed cost of operations on columns is more than they save.
_MANY: Final = 200
_FLOAT_DIGITS: Final = 50
_MAX_INTEGER: Final = 2**63 - 1
_MILLION: Final = 10**QUANTITY.scale


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


def split_column(units: int, weights: pa.Array, total: int) -> pa.Array:
    """Return what :func:`split_in_order` returns, as a column; ``weights`` (INTEGER) are positive, and ``total`` is
    their sum.

    >>> split_column(100, decimals_of([2, 1], INTEGER), 3).to_pylist()
    [Decimal('67'), Decimal('33')]
    """
    magnitude = abs(units)
    # How far a quotient of floats may be off, rounded up: each of its three roundings is by a part in 2⁵³.
    error = (magnitude >> _FLOAT_DIGITS) + 1
    is_usual = len(weights) >= _MANY and magnitude <= _MAX_INTEGER // 2
    narrow = _narrow(weights, total, _MAX_INTEGER // (2 * error + 2)) if is_usual else None
    if narrow is None:
        return decimals_of(split_in_order(units, integers_of(weights)), INTEGER)
    weights, total = narrow
    quotients = pc.multiply(weights.cast(pa.float64(), safe=False), pa.scalar(magnitude / total, pa.float64()))
    # Not more than the true shares, so that what they leave is positive. The products may overflow, but their
    # difference fits, so it is exact.
    shares = pc.subtract(quotients.cast(pa.int64(), safe=False), int64(error))
    remainders = pc.subtract(pc.multiply(weights, int64(magnitude)), pc.multiply(shares, int64(total)))
    missing = pc.divide(remainders, int64(total))
    shares = pc.add(shares, missing)
    remainders = pc.subtract(remainders, pc.multiply(missing, int64(total)))
    left = magnitude - pc.sum(shares).as_py()
    rank = pc.rank(remainders, sort_keys="descending", tiebreaker="first")
    shares = pc.add(shares, pc.less_equal(rank, pa.scalar(left, pa.uint64())).cast(pa.int64()))
    return (shares if units >= 0 else pc.negate(shares)).cast(INTEGER)


def _narrow(weights: pa.Array, total: int, largest: int) -> tuple[pa.Array, int] | None:
    """Return weights of the same proportions as 64-bit integers, with their total, which is ``largest`` at most; None
    if there are none. Measured weights are millionths of usually whole numbers, such as bytes."""
    if total <= largest:
        return weights.cast(pa.int64()), total
    if total <= largest * _MILLION:
        with suppress(pa.ArrowInvalid):
            return reinterpret(weights, QUANTITY).cast(pa.int64()), total // _MILLION
    return None


def split_evenly(units: int, recipients: int) -> tuple[int, int, int]:
    """Return ``(favoured, larger, smaller)``: of ``recipients`` identities of equal weight, the first ``favoured`` ids
    get the ``larger`` share and all others the ``smaller`` one.

    >>> split_evenly(-100, 3)
    (1, -34, -33)
    """
    smaller, favoured = divmod(abs(units), recipients)
    sign = -1 if units < 0 else 1
    return favoured, sign * (smaller + 1), sign * smaller
