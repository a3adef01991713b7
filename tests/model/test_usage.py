"""Measured values are parsed from text."""

from __future__ import annotations

from decimal import Decimal

import pytest

from chargeback.model.usage import parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1024", Decimal(1024)),
        ("1.5e3", Decimal(1500)),
        ("0.0000005", Decimal(0)),
        ("0.0000015", Decimal("0.000002")),
        ("9007199254740993", Decimal(9007199254740993)),
    ],
)
def test_values_are_kept_with_six_decimals(text: str, value: Decimal) -> None:
    """A value keeps six decimals, rounded half-even, and all digits before the point."""
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "-1", "1e400", "", "many"])
def test_values_that_must_not_count(text: str) -> None:
    """NaN, infinite, negative, huge and non-numeric values are None."""
    assert parse_quantity(text) is None
