"""Budgets: monthly amounts, parts of them, and thresholds."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import Budget, Spending, Threshold, part_of_month

NOVEMBER, DECEMBER = AccountingPeriod.named("2026-11"), AccountingPeriod.named("2026-12")
MONEY = st.decimals(min_value="0.01", max_value="1000000", places=2)


def test_a_month_of_its_own_comes_first() -> None:
    """A month's own amount takes precedence over the monthly amount; without either, the amount is None."""
    budget = Budget("b", "B", amounts={"2026-12": Decimal("1500")}, monthly=Decimal("1000"))
    assert [budget.amount_of(each) for each in (NOVEMBER, DECEMBER)] == [Decimal(1000), Decimal(1500)]
    assert Budget("b", "B", amounts={"2026-12": Decimal(1)}).amount_of(NOVEMBER) is None


def test_it_is_stored_whole() -> None:
    """A budget read from its JSON equals the original."""
    budget = Budget(
        "b",
        "B",
        {"identity_id": ("sa-1", "sa-2")},
        "all",
        {"2026-12": Decimal("0.000000000001")},
        Decimal("1000.50"),
        (Threshold("actual", Decimal("80")), Threshold("forecast", Decimal("99.5"))),
    )
    assert Budget.of("b", budget.as_json()) == budget


@given(MONEY, st.integers(1, 31))
def test_the_days_of_a_month_have_its_amount(amount: Decimal, days: int) -> None:
    """Parts of a month are exact to 10⁻¹², and all days have the full amount."""
    assert part_of_month(amount, days, days) == amount
    assert part_of_month(amount, 0, days) == 0
    each = part_of_month(amount, 1, days)
    assert abs(each * days - amount) <= Decimal("1E-12") * days


@pytest.mark.parametrize(
    ("on", "percent", "to_date", "expected", "crosses"),
    [
        ("actual", "80", "79.99", None, False),
        ("actual", "80", "80", None, True),
        ("pace", "100", "40", None, True),
        ("pace", "100", "39.99", None, False),
        ("forecast", "100", "80", None, False),
        ("forecast", "100", "10", "99.99", False),
        ("forecast", "100", "10", "100", True),
        ("actual", "80", "-5", None, False),
    ],
)
def test_what_a_threshold_looks_at(on: str, percent: str, to_date: str, expected: str | None, crosses: bool) -> None:
    """A threshold compares costs to date, pace or forecast with the month's 100, 40 of it due by now."""
    its = Spending(Decimal(100), Decimal(to_date), Decimal(40), None if expected is None else Decimal(expected))
    assert its.crosses(Threshold(on, Decimal(percent))) is crosses  # type: ignore[arg-type]


def test_a_forecast_is_clear_three_percent_below() -> None:
    """A forecast clears a threshold three percent below it, so that small changes are not reported again."""
    threshold = Threshold("forecast", Decimal(50))
    clear = [
        Spending(Decimal(100), Decimal(0), Decimal(0), Decimal(text)).is_clear_of(threshold)
        for text in ("48.5", "48.49", "60")
    ]
    assert clear == [False, True, False]


def test_equal_thresholds_have_one_key() -> None:
    """Thresholds that differ only in how the percentage is written have the same key."""
    assert Threshold("actual", Decimal("80.00")).key == Threshold("actual", Decimal("80")).key == "actual 80"
