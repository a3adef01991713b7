"""The exact split of a category's outcome: percentages as integer weights, and a row's units by these weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import gcd

from chargeback.allocation.split import split_in_order
from chargeback.model.money import to_units


@dataclass(frozen=True)
class Outcome:
    """What a row is assigned: (value, integer weight) in ascending order of the values, and the place of the rule that
    decided, None for the default. Where nothing is split there is one entry with the weight 1."""

    parts: tuple[tuple[str, int], ...]
    rule: int | None


def weights_of(percentages: Iterable[tuple[str, Decimal]]) -> tuple[tuple[str, int], ...]:
    """Return the smallest integer weights with the same proportions, in ascending order of the values.

    >>> weights_of([("payments", Decimal("60")), ("orders", Decimal("40"))])
    (('orders', 2), ('payments', 3))
    """
    scaled = sorted((value, to_units(percentage)) for value, percentage in percentages)
    divisor = gcd(*(weight for _, weight in scaled))
    return tuple((value, weight // divisor) for value, weight in scaled)


def split_units(units: int, weights: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Return (value, units) for weights in ascending order of their values; the units sum exactly to those given.

    >>> split_units(-100, (("a", 1), ("b", 2)))
    (('a', -33), ('b', -67))
    """
    if len(weights) == 1:
        return ((weights[0][0], units),)
    shares = split_in_order(units, [weight for _, weight in weights])
    return tuple((value, share) for (value, _), share in zip(weights, shares, strict=True))


def parts(units: int, outcome: Outcome) -> tuple[tuple[str, int], ...]:
    """Return how a row's units (10⁻¹² of the currency, of either sign) are split over the values of its outcome."""
    return split_units(units, outcome.parts)
