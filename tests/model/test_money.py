"""Money keeps every digit, from the text of a request to the text of the response."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.errors import SumTooLarge
from chargeback.model.money import (
    LIMIT,
    difference,
    exact_sum,
    from_units,
    is_exact,
    parse_decimal,
    parse_json,
    render,
    to_amount,
    to_units,
    total,
)

amounts = st.integers(-(10**38) + 1, 10**38 - 1).map(from_units)


@given(amounts)
def test_units_and_back_lose_nothing(amount: Decimal) -> None:
    """Converting an amount to units of 10⁻¹² and back loses nothing."""
    assert from_units(to_units(amount)) == amount


@given(amounts)
def test_rendering_is_exact_and_plain(amount: Decimal) -> None:
    """The rendered text is exact, with at least two decimals, without exponent or other trailing zeros."""
    text = render(amount)
    whole, _, fraction = text.partition(".")
    assert parse_decimal(text) == amount
    assert "E" not in text.upper()
    assert len(fraction) >= 2
    assert len(fraction) == 2 or not fraction.endswith("0")
    assert whole != "-0" or Decimal(text) != 0


@given(st.lists(amounts.filter(lambda amount: abs(amount) < LIMIT / 100), max_size=50))
def test_total_does_not_depend_on_the_order(values: list[Decimal]) -> None:
    """A sum is exact beyond the 28 digits of Python's default context, in any order."""
    assert total(values) == total(reversed(values)) == from_units(sum(to_units(value) for value in values))


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_json_numbers_are_decimals_of_their_text(value: Decimal) -> None:
    """A JSON number becomes the decimal of its text, never through a float."""
    parsed = parse_json(f'{{"amount": {value:f}}}')["amount"]
    assert isinstance(parsed, Decimal | int)
    assert parsed == value


def test_half_even_once() -> None:
    """An amount is rounded half-even to twelve decimals."""
    assert to_amount(Decimal("0.0000000000015")) == Decimal("0.000000000002")
    assert to_amount(Decimal("0.0000000000025")) == Decimal("0.000000000002")
    assert not is_exact(Decimal("0.0000000000025"))
    assert is_exact(Decimal("0.25"))


@pytest.mark.parametrize("text", ["", "abc", "NaN", "Infinity", "1,5"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    """Only finite decimal numbers are accepted."""
    with pytest.raises(ValueError, match="is not a"):
        parse_decimal(text)


def test_what_does_not_fit_is_refused() -> None:
    """An amount with more than 26 digits before the point raises an error; it is not rounded."""
    with pytest.raises(ValueError, match="does not fit"):
        to_amount(Decimal(10) ** 26)


def test_sums_that_cannot_be_shown_are_refused() -> None:
    """Sums, differences and amounts of units have the limit of an amount; only exact sums have none."""
    most = from_units(10**38 - 1)
    less = most.copy_negate()
    assert total([most, most, less]) == most
    assert difference(most, Decimal(0)) == from_units(to_units(most)) == most
    for parts in ([most, most], [less, less]):
        with pytest.raises(SumTooLarge, match="more than 26 digits"):
            total(parts)
    with pytest.raises(SumTooLarge):
        difference(less, most)
    with pytest.raises(SumTooLarge):
        from_units(to_units(most) + 1)
    assert f"{exact_sum([most, most]):f}" == "199999999999999999999999999.999999999998"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_json_has_no_such_constants(constant: str) -> None:
    """NaN and infinity are rejected: they are Python's extension of JSON."""
    with pytest.raises(ValueError, match="not a JSON number"):
        parse_json(json.dumps({"a": 1}).replace("1", constant))
