"""The exact split distributes every unit."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chargeback.allocation import split
from chargeback.allocation.columns import INTEGER, decimals_of, integers_of
from chargeback.allocation.split import split_column, split_evenly, split_exactly, split_in_order

units = st.integers(-(10**24), 10**24)
weights = st.dictionaries(st.text("abcxyz", min_size=1, max_size=3), st.integers(1, 10**15), min_size=1, max_size=40)


@given(units, weights)
def test_nothing_is_lost(amount: int, shares: dict[str, int]) -> None:
    """The shares sum to the amount, for charges and refunds."""
    assert sum(share for _, share in split_exactly(amount, list(shares.items()))) == amount


@given(units, weights)
def test_nobody_is_off_by_a_unit(amount: int, shares: dict[str, int]) -> None:
    """Every share differs from the exact quotient by less than one unit."""
    total = sum(shares.values())
    for name, share in split_exactly(amount, list(shares.items())):
        assert abs(Fraction(amount * shares[name], total) - share) < 1


@given(units, weights)
def test_a_refund_mirrors_its_charge(amount: int, shares: dict[str, int]) -> None:
    """The split of a negative amount is that of the positive one with the opposite sign."""
    charge = split_exactly(amount, list(shares.items()))
    assert split_exactly(-amount, list(shares.items())) == [(name, -share) for name, share in charge]


@given(units, st.integers(1, 50))
def test_an_even_split_is_a_split_by_equal_weights(amount: int, recipients: int) -> None:
    """In an even split, the first ids get the larger shares."""
    favoured, larger, smaller = split_evenly(amount, recipients)
    evenly = [larger] * favoured + [smaller] * (recipients - favoured)
    assert evenly == split_in_order(amount, [1] * recipients)


@given(units, weights)
def test_ties_go_to_the_first_ids(amount: int, shares: dict[str, int]) -> None:
    """Remaining units go to the largest remainders; ties go to the first ids."""
    total = sum(shares.values())
    floors = {name: divmod(abs(amount) * weight, total) for name, weight in shares.items()}
    left = abs(amount) - sum(floor for floor, _ in floors.values())
    favoured = sorted(shares, key=lambda name: (-floors[name][1], name))[:left]
    sign = -1 if amount < 0 else 1
    expected = {name: sign * (floor + (name in favoured)) for name, (floor, _) in floors.items()}
    assert dict(split_exactly(amount, list(shares.items()))) == expected


# 250 weights, many of them equal, whose total is often close to the largest that 64 bits allow, or a million times it.
_some = st.lists(st.integers(1, 2**55) | st.integers(1, 9), min_size=1, max_size=40)
_many_weights = st.builds(
    lambda some, unit: [each * unit for each in (some * 250)[:250]], _some, st.sampled_from([1, 10**6])
)
_wide = st.integers(-(2**64), 2**64) | st.integers(-(10**6), 10**6) | st.sampled_from([2**50, 2**62, -(2**62)])


@given(_wide, _many_weights)
@example(10**18, [*range(1, 251)])
@example(10**9 + 7, [2**55 - 1] * 249 + [1])
def test_a_split_of_columns_is_that_of_integers(amount: int, weights: list[int]) -> None:
    """Many weights, of any size, get the shares that Python's integers give."""
    column = decimals_of(weights, INTEGER)
    assert integers_of(split_column(amount, column, sum(weights))) == split_in_order(amount, weights)


def test_usual_columns_are_split_without_pythons_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand participants with up to a terabyte each, in millionths of a byte, share a thousand; with fractions
    of bytes, that is too much for 64 bits."""
    monkeypatch.setattr(split, "split_in_order", lambda *_: pytest.fail("one by one"))
    thousand, weights = 10**3 * 10**12, [number * 10**9 * 10**6 for number in range(1, 1_001)]
    assert len(split_column(thousand, decimals_of(weights, INTEGER), sum(weights))) == 1_000
    weights[-1] += 1
    with pytest.raises(pytest.fail.Exception, match="one by one"):
        split_column(thousand, decimals_of(weights, INTEGER), sum(weights))


@pytest.mark.parametrize("recipients", [[], [("a", 0)], [("a", 1), ("b", -1)]])
def test_a_split_needs_recipients(recipients: list[tuple[str, int]]) -> None:
    """An empty list of recipients, or a weight that is not positive, is an error."""
    with pytest.raises(ValueError, match="at least one recipient"):
        split_exactly(1, recipients)
