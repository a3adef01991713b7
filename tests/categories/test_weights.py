"""Percentages as weights, and units split by them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from chargeback.categories.weights import Outcome, parts, weights_of


@pytest.mark.parametrize(
    ("percentages", "weights"),
    [
        ({"a": "50", "b": "50.0"}, {"a": 1, "b": 1}),
        ({"b": "33.3", "a": "33.3", "c": "33.4"}, {"a": 333, "b": 333, "c": 334}),
        ({"a": "99.999999999999", "b": "0.000000000001"}, {"a": 99999999999999, "b": 1}),
        ({"a": "1E+2"}, {"a": 1}),
    ],
)
def test_weights_are_the_smallest_integers(percentages: dict[str, str], weights: dict[str, int]) -> None:
    """Weights have the exact proportions of the percentages, in ascending order of the values."""
    found = weights_of((value, Decimal(text)) for value, text in percentages.items())
    assert found == tuple(sorted(weights.items()))


@pytest.mark.parametrize(
    ("units", "shares"), [(0, (0, 0, 0)), (1, (1, 0, 0)), (-1, (-1, 0, 0)), (5, (2, 2, 1)), (-(10**30) - 2, None)]
)
def test_units_are_split_by_largest_remainder(units: int, shares: tuple[int, ...] | None) -> None:
    """Ties go to the first value; a refund is split like the charge that it refunds."""
    found = parts(units, Outcome((("a", 1), ("b", 1), ("c", 1)), None))
    assert sum(share for _, share in found) == units
    assert shares is None or tuple(share for _, share in found) == shares
