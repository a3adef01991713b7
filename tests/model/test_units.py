"""A unit costs what its amount divided by the exact usage is."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.errors import SumTooLarge
from chargeback.reports.unit_costs import Unit, unit_cost

GIB = Unit("GiB", 2**30)
HALF = Fraction(1, 2)


@given(st.decimals(-(10**12), 10**12, places=12), st.decimals("0.001", 10**18, places=6))
def test_the_nearest_number(amount: Decimal, usage: Decimal) -> None:
    """Usage and unit cost are the exact ones, rounded to their places and nowhere before."""
    shown, cost = unit_cost(amount, usage, GIB)
    assert shown is not None
    assert cost is not None
    exact = Fraction(usage) / 2**30
    assert abs(Fraction(shown) - exact) * 10**6 <= HALF
    assert abs(Fraction(cost) - Fraction(amount) / exact) * 10**12 <= HALF


def test_a_cost_with_too_many_digits_is_refused() -> None:
    """What a whole unit of next to nothing would cost may not fit a column."""
    with pytest.raises(SumTooLarge):
        unit_cost(Decimal(10**12), Decimal("0.000001"), GIB)


def test_without_usage() -> None:
    """There is no unit cost without usage; measured zeros are a usage of zero."""
    assert unit_cost(Decimal("1"), None, GIB) == (None, None)
    assert unit_cost(Decimal("1"), Decimal(0), GIB) == (Decimal(0), None)
