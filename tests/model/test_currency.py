"""Conversion rounds nothing, so that parts sum to their total in every currency."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.currency import (
    CONVERTED_PLACES,
    CURRENCY_CODES,
    Conversion,
    checked_rate,
    converted,
    missing_months,
    parse_month,
)
from chargeback.model.money import exact_sum

amounts = st.decimals(-(10**24), 10**24, places=12)
rates = st.decimals("0.00000001", "9999999999", places=8)
days = st.dates(date(2026, 1, 1), date(2026, 3, 31))


@given(st.lists(amounts, max_size=20), rates)
def test_parts_sum_to_their_total(parts: list[Decimal], rate: Decimal) -> None:
    """The sum of converted parts equals the converted sum exactly, with at most twenty decimals."""
    whole = converted(exact_sum(parts), rate)
    assert exact_sum(converted(part, rate) for part in parts) == whole
    assert -int(whole.as_tuple().exponent) <= CONVERTED_PLACES


@given(st.dictionaries(days, amounts), st.tuples(rates, rates, rates))
def test_each_month_has_its_rate(parts: dict[date, Decimal], of_months: tuple[Decimal, Decimal, Decimal]) -> None:
    """Each month of a sum is converted at its own rate."""
    known = {date(2026, month, 1): rate for month, rate in enumerate(of_months, 1)}
    by_month = [
        converted(exact_sum(parts[day] for day in parts if day.month == each.month), rate)
        for each, rate in known.items()
    ]
    conversion = Conversion("USD", "EUR", known)
    assert exact_sum(conversion.convert(day, amount) for day, amount in parts.items()) == exact_sum(by_month)


def test_missing_months() -> None:
    """Each month without a rate is listed once."""
    known = {parse_month("2026-02"): Decimal("0.9")}
    asked = [date(2026, 3, 2), date(2026, 1, 1), date(2026, 2, 1), date(2026, 1, 31)]
    assert missing_months(known, asked) == ["2026-01", "2026-03"]


@pytest.mark.parametrize("wrong", ["0", "-1", "10000000000", "0.123456789"])
def test_what_is_no_rate(wrong: str) -> None:
    """A rate must be above zero, below 10¹⁰, and have at most eight decimals."""
    with pytest.raises(ValueError, match="should"):
        checked_rate(Decimal(wrong))


@pytest.mark.parametrize("wrong", ["2026-13", "2026-1", "2026", "2026-10-01", "", "0226-10"])
def test_what_is_no_month(wrong: str) -> None:
    """A month must be written like 2026-10."""
    with pytest.raises(ValueError, match="should be a month"):
        parse_month(wrong)


def test_codes() -> None:
    """The codes are those of currencies in use, three letters each."""
    assert {"USD", "EUR", "GBP", "CHF", "JPY", "INR"} <= CURRENCY_CODES
    assert all(len(code) == 3 for code in CURRENCY_CODES)
