"""Decimals are converted to integers and back without losing a digit."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from chargeback.allocation.columns import INTEGER, decimals_of, encode, from_encoded, integers_of, reinterpret, repeat
from chargeback.model.billing import MONEY

_LARGEST = 10**38 - 1


@given(st.lists(st.integers(-_LARGEST, _LARGEST)))
def test_every_integer_survives(integers: list[int]) -> None:
    """Every integer of up to 38 digits, of either sign, is read back from a column unchanged."""
    column = decimals_of(integers, MONEY)
    column.validate(full=True)
    assert integers_of(column) == integers
    assert from_encoded([encode(value) for value in integers], MONEY).equals(column)


@given(st.lists(st.integers(-_LARGEST, _LARGEST), min_size=3))
def test_a_part_of_a_column_is_read_alone(integers: list[int]) -> None:
    """A slice of a column returns only its own values."""
    column = decimals_of(integers, MONEY)
    assert integers_of(column.slice(1, 2)) == integers[1:3]
    assert integers_of(reinterpret(column.slice(2), INTEGER)) == integers[2:]


def test_a_value_under_another_scale() -> None:
    """An amount can be read as an integer count of its smallest unit."""
    amounts = pa.array([Decimal("1.5"), Decimal("-0.000000000001")], MONEY)
    assert reinterpret(amounts, INTEGER).to_pylist() == [Decimal(1500000000000), Decimal(-1)]


def test_values_are_repeat() -> None:
    """Each value is repeated as often as its count says, possibly zero times."""
    assert repeat([7, 8, 300000], [2, 0, 1]).to_pylist() == [7, 7, 300000]
    assert len(repeat([], [])) == 0
