"""Numbers in sentences."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from chargeback.allocation.methods import AllocationMethod, MethodKind
from chargeback.reports.wording import calendar_day, measured, money_text, name, percent, rounded, start


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0.00"),
        ("0.005", "0.0050"),
        ("0.015", "0.02"),
        ("-12.345678901234", "-12.35"),
        ("-1234567.891", "-1,234,567.89"),
        ("1E+20", "100,000,000,000,000,000,000.00"),
    ],
)
def test_money(amount: str, text: str) -> None:
    """Amounts have cents, or two significant digits below one cent."""
    assert money_text(Decimal(amount), "EUR", with_currency=False) == text
    assert money_text(Decimal(amount), "EUR") == f"{text} EUR"


def test_measurements() -> None:
    """Bytes have the unit of the total, other measures their name; numbers have three digits."""
    bytes_in = AllocationMethod(MethodKind.USAGE, ("topic_bytes_in",))
    retained = AllocationMethod(MethodKind.USAGE, ("topic_retained_bytes",))
    units = AllocationMethod(MethodKind.USAGE, ("cfu",))
    assert measured(bytes_in, Decimal(12_345_678), Decimal(45_600_000_000), "wrote") == "wrote 0.0123 of 45.6 GB"
    assert measured(units, Decimal("3.1239"), Decimal(1234), "wrote") == "used 3.12 of 1,234 CFU"
    assert measured(retained, Decimal(1), Decimal(2), "retained") == "retained 1 of 2 bytes"


def test_shares_days_and_names() -> None:
    """Shares, days and names are formatted for sentences."""
    assert (percent(Decimal("0.7")), calendar_day(date(2026, 11, 4))) == ("70 %", "4 November 2026")
    assert (name({"a": "b"}, "a"), name({}, "a"), start("the line")) == ("b", "a", "The line")
    assert rounded(Fraction(1, 3), 6) == Decimal("0.333333")
