"""Amounts in cents sum to the rounded total, and each is less than a cent from its exact value."""

from __future__ import annotations

from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.model.cents import minor_places, rounded_cents, to_cents
from chargeback.model.currency import CURRENCY_CODES
from chargeback.model.money import from_units, total

CENT = Decimal("0.01")
#: Charges, credits and refunds, many in whole or half cents.
UNITS = st.one_of(st.integers(-(10**18), 10**18), st.integers(-400, 400).map(lambda halves: halves * 5 * 10**9))
AMOUNTS = st.lists(UNITS.map(from_units), max_size=30)


@given(AMOUNTS)
def test_cents_sum_to_the_rounded_sum(amounts: list[Decimal]) -> None:
    """Amounts of any sign are rounded up or down and sum to the rounded total; whole cents do not change."""
    cents = to_cents(amounts, "USD")
    assert sum(cents, Decimal(0)) == total(amounts).quantize(CENT, ROUND_HALF_EVEN)
    for amount, rounded in zip(amounts, cents, strict=True):
        assert abs(amount - rounded) < CENT
        assert rounded.as_tuple().exponent == -2


@given(st.lists(AMOUNTS, min_size=1, max_size=6))
def test_cents_of_parts_sum_to_the_cents_of_the_whole(groups: list[list[Decimal]]) -> None:
    """Statements sum to the rounded total, and the lines of each sum to their statement."""
    wholes = to_cents([total(group) for group in groups], "USD")
    lines = [to_cents(group, "USD", whole) for group, whole in zip(groups, wholes, strict=True)]
    assert [sum(of_group, Decimal(0)) for of_group in lines] == wholes
    assert sum(wholes, Decimal(0)) == rounded_cents(total(amount for group in groups for amount in group), "USD")


@given(AMOUNTS, st.randoms(use_true_random=False))
def test_the_order_matters_for_equal_remainders_only(amounts: list[Decimal], random: object) -> None:
    """The order decides only which of several equal remainders are rounded up."""
    backwards = to_cents(amounts[::-1], "USD")[::-1]
    for amount, there, back in zip(amounts, to_cents(amounts, "USD"), backwards, strict=True):
        same = [each for each in amounts if (each - amount) % CENT == 0]
        assert there == back or len(same) > 1


def test_ties_go_to_the_first() -> None:
    """Of equal remainders, the first ones are rounded up."""
    assert to_cents([Decimal("1.005")] * 3, "USD") == [Decimal("1.01"), Decimal("1.01"), Decimal("1.00")]
    assert to_cents([Decimal("-0.005"), Decimal("-0.005")], "USD") == [Decimal("0.00"), Decimal("-0.01")]


@pytest.mark.parametrize("whole", ["0.00", "0.03"])
def test_a_whole_that_is_not_the_sum_is_refused(whole: str) -> None:
    """A given total is rejected if an amount would have to move by a cent or more to reach it."""
    with pytest.raises(ValueError, match="is not the sum of the amounts"):
        to_cents([Decimal("0.015")], "USD", Decimal(whole))


@pytest.mark.parametrize(("currency", "places"), [("USD", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)])
@given(amounts=AMOUNTS)
@settings(max_examples=20)
def test_amounts_are_rounded_to_the_minor_unit(currency: str, places: int, amounts: list[Decimal]) -> None:
    """With 0 to 4 decimal places, parts sum to the total and differ by less than a minor unit."""
    unit = Decimal(1).scaleb(-places)
    cents = to_cents(amounts, currency)
    assert minor_places(currency) == places
    assert sum(cents, Decimal(0)) == rounded_cents(total(amounts), currency)
    assert rounded_cents(total(amounts), currency) == total(amounts).quantize(unit, ROUND_HALF_EVEN)
    for amount, rounded in zip(amounts, cents, strict=True):
        assert abs(amount - rounded) < unit
        assert rounded.as_tuple().exponent == -places


def test_minor_units_are_those_of_the_standard() -> None:
    """Of the currencies in use, 26 do not have two decimal places."""
    places = Counter(minor_places(code) for code in CURRENCY_CODES)
    assert places == {0: 17, 2: len(CURRENCY_CODES) - 26, 3: 7, 4: 2}
    assert [minor_places(code) for code in ("KRW", "VND", "CLP", "BHD", "TND", "UYW")] == [0, 0, 0, 3, 3, 4]
