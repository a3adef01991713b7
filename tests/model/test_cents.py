"""Amounts in cents add up to the rounded sum, and none is a cent away from its exact value."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.cents import rounded_cents, to_cents
from chargeback.model.money import from_units, total

CENT = Decimal("0.01")
#: Charges, credits and refunds, many of whole and of half cents.
UNITS = st.one_of(st.integers(-(10**18), 10**18), st.integers(-400, 400).map(lambda halves: halves * 5 * 10**9))
AMOUNTS = st.lists(UNITS.map(from_units), max_size=30)


@given(AMOUNTS)
def test_cents_sum_to_the_rounded_sum(amounts: list[Decimal]) -> None:
    """Whatever the signs; each amount is rounded up or down, and whole cents are not touched."""
    cents = to_cents(amounts)
    assert sum(cents, Decimal(0)) == total(amounts).quantize(CENT, ROUND_HALF_EVEN)
    for amount, rounded in zip(amounts, cents, strict=True):
        assert abs(amount - rounded) < CENT
        assert rounded.as_tuple().exponent == -2


@given(st.lists(AMOUNTS, min_size=1, max_size=6))
def test_cents_of_parts_sum_to_the_cents_of_the_whole(groups: list[list[Decimal]]) -> None:
    """First over statements, then over the lines of each: both add up."""
    wholes = to_cents([total(group) for group in groups])
    lines = [to_cents(group, whole) for group, whole in zip(groups, wholes, strict=True)]
    assert [sum(of_group, Decimal(0)) for of_group in lines] == wholes
    assert sum(wholes, Decimal(0)) == rounded_cents(total(amount for group in groups for amount in group))


@given(AMOUNTS, st.randoms(use_true_random=False))
def test_the_order_matters_for_equal_remainders_only(amounts: list[Decimal], random: object) -> None:
    """Of equal remainders the first amounts are rounded up; other orders give the same amounts otherwise."""
    backwards = to_cents(amounts[::-1])[::-1]
    for amount, there, back in zip(amounts, to_cents(amounts), backwards, strict=True):
        same = [each for each in amounts if (each - amount) % CENT == 0]
        assert there == back or len(same) > 1


def test_ties_go_to_the_first() -> None:
    """Three equal parts of a cent-less sum."""
    assert to_cents([Decimal("1.005")] * 3) == [Decimal("1.01"), Decimal("1.01"), Decimal("1.00")]
    assert to_cents([Decimal("-0.005"), Decimal("-0.005")]) == [Decimal("0.00"), Decimal("-0.01")]


@pytest.mark.parametrize("whole", ["0.00", "0.03"])
def test_a_whole_that_is_not_the_sum_is_refused(whole: str) -> None:
    """No amount may be moved by a cent or more to reach it."""
    with pytest.raises(ValueError, match="is not the sum of the amounts"):
        to_cents([Decimal("0.015")], Decimal(whole))
