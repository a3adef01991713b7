"""JSON with exact decimals."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.demo.responses import dumps, loads, number


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15, places=12))
def test_decimals_survive(value: Decimal) -> None:
    """A decimal written and read as a decimal is the same number."""
    assert loads(dumps({"a": [value, None, True, "ü"]})) == {"a": [value, None, True, "ü"]}


def test_numbers_look_like_the_providers() -> None:
    """Plain digits without superfluous zeros; an exponent only for the very small, as Go writes them."""
    texts = [number(Decimal(text)) for text in ("1.500", "100", "-0.000001", "0.00000013", "0.000", "1E+2")]
    assert texts == ["1.5", "100", "-0.000001", "1.3e-7", "0", "100"]


def test_floats_are_refused() -> None:
    """A float is an error, for it cannot be written exactly."""
    with pytest.raises(TypeError, match="float"):
        dumps({"amount": 0.1})
