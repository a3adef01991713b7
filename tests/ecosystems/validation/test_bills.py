"""A bill that is not as the contract asks is an error of its line, of its day or of the whole answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from chargeback.ecosystems.contract import GatheredDay
from chargeback.errors import PluginError
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from tests.ecosystems.plugins import DAY, DAYS, SECOND, bill, line, one_wrong_line

WRONG_LINES = [
    ({"resource_id": ""}, "resource_id should not be empty"),
    ({"resource_id": " \t"}, "resource_id should not be empty"),
    ({"resource_id": None}, "resource_id should be a str, not None"),
    ({"resource_id": 7}, "resource_id should be a str, not int 7"),
    ({"resource_id": "UNALLOCATED"}, "resource_id should not be 'UNALLOCATED', which is reserved"),
    ({"resource_type": "system"}, "resource_type should not be 'system', which is reserved"),
    ({"resource_type": "x" * 65}, "resource_type should have at most 64 characters"),
    ({"product_type": ""}, "product_type should not be empty"),
    ({"product_category": None}, "product_category should be a str, not None"),
    ({"granularity": None}, "granularity should be a str, not None"),
    ({"unit": 3}, "unit should be a str or None, not int 3"),
    ({"environment_id": b"env"}, "environment_id should be a str, not bytes"),
    ({"total_cost": 1.5}, "total_cost should be a Decimal, not float 1.5"),
    ({"total_cost": None}, "total_cost should be a Decimal, not None"),
    ({"total_cost": Decimal("NaN")}, "total_cost should be a finite number, not NaN"),
    ({"total_cost": Decimal("1e30")}, r"total_cost does not fit DECIMAL\(38,12\)"),
    ({"total_cost": Decimal("0.1234567890123")}, "total_cost has more than 12 decimal places; .*to_amount"),
    ({"quantity": 2}, "quantity should be a Decimal, not int 2"),
    ({"discount_amount": Decimal("Infinity")}, "discount_amount should be a finite number, not Infinity"),
    ({"currency": "EUR"}, "currency should be USD, the tenant's, not str 'EUR'"),
    ({"currency": None}, "currency should be USD, the tenant's, not None"),
    ({"timestamp": datetime(2026, 1, 3)}, "timestamp should have a time zone"),  # noqa: DTZ001 - that is what is wrong
    ({"timestamp": start_of_day(DAY)}, "timestamp should be within 2026-01-03 UTC"),
    (
        {"timestamp": datetime(2026, 1, 3, 1, tzinfo=timezone(timedelta(hours=2)))},
        "timestamp should be within 2026-01-03 UTC",
    ),
    ({"timestamp": "2026-01-03"}, "timestamp should be a datetime, not str"),
    ({"day": DAY}, "day should be 2026-01-03, the day that it is returned for, not 2026-01-02"),
    ({"day": datetime(2026, 1, 3, tzinfo=UTC)}, "day should be a date, not datetime"),
]


@pytest.mark.parametrize(("wrong", "expected"), WRONG_LINES, ids=lambda each: str(each)[:50])
def test_a_wrong_line_is_the_error_of_its_day(ask: Callable[..., Any], wrong: dict[str, Any], expected: str) -> None:
    """The error names the plugin, the method, the line and the field; the other days are as they were answered."""
    days = ask(bill, on_billing=one_wrong_line(**wrong))
    (error,) = [gathered.error for gathered in days.values() if gathered.error is not None]
    assert error == days[SECOND].error
    assert error.startswith("plugin tiny: billing: line 2: ")
    assert re.search(expected, error), error
    assert [len(gathered.lines) for gathered in days.values()] == [2, 0, 2]


#: Of which tests make what no type checker lets pass.
A_DAY: Any = GatheredDay


WRONG_DAYS = [
    (lambda day: A_DAY(day, iter([])), "lines should be a list or a tuple, not list_iterator"),
    (lambda day: A_DAY(day, "lines"), "lines should be a list or a tuple, not str 'lines'"),
    (lambda day: A_DAY(day, None), "lines should be a list or a tuple, not None"),
    (lambda day: A_DAY(day, [{"cost": 1}]), "line 1 should be a BillingLine, not dict"),
    (lambda day: A_DAY(day, error=""), "error should not be empty"),
    (lambda day: A_DAY(day, error=ValueError("x")), "error should be a str, not ValueError"),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_DAYS)
def test_a_wrong_day_is_an_error_of_its_own(
    ask: Callable[..., Any], answer: Callable[[date], Any], expected: str
) -> None:
    """No day is taken for one without cost because its lines are no list, or its error says nothing."""
    days = ask(bill, on_billing=lambda days: (answer(day) if day == SECOND else GatheredDay(day) for day in days))
    assert {day: gathered.error for day, gathered in days.items() if gathered.error} == {
        SECOND: f"plugin tiny: billing: {expected}"
    }


def test_a_day_that_is_answered_twice_is_an_error(ask: Callable[..., Any]) -> None:
    """The second answer, an empty one too, is no answer: it says that the first is not to be trusted."""

    def answer(days: DayRange) -> Iterator[GatheredDay]:
        for day in days:
            yield GatheredDay(day, [line(day)])
        yield GatheredDay(SECOND)

    assert ask(bill, on_billing=answer)[SECOND] == GatheredDay(
        SECOND, error="plugin tiny: billing: the day was returned twice; return each day exactly once"
    )


def test_a_day_that_is_missing_is_an_error(ask: Callable[..., Any]) -> None:
    """It is not one without cost."""
    days = ask(bill, on_billing=lambda days: (GatheredDay(day) for day in days if day != SECOND))
    assert days[SECOND].error == "plugin tiny: billing: the day was not returned"


WRONG_BILLS = [
    (lambda days: None, "should return an iterator, not NoneType"),
    (lambda days: "days", "should return an iterator, not str"),
    (lambda days: [*map(GatheredDay, days), None], "answer 4 should be a GatheredDay, not None"),
    (lambda days: [*map(GatheredDay, days), GatheredDay(DAYS.end)], "2026-01-05 was not requested"),
    (
        lambda days: [*map(GatheredDay, days), GatheredDay(datetime(2026, 1, 2, tzinfo=UTC))],
        "day of answer 4 should be a date, not datetime",
    ),
    (lambda days: [*map(GatheredDay, days), GatheredDay("2026-01-02")], "day of answer 4 should be a date, not str"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_BILLS)
def test_an_answer_of_no_day_is_an_error_of_the_bill(
    ask: Callable[..., Any], answer: Callable[[DayRange], Any], expected: str
) -> None:
    """It could be part of any day's bill; the days themselves are given before."""
    given = []
    with pytest.raises(PluginError, match=f"plugin tiny: billing of 2026-01-02 to 2026-01-05.*{expected}"):
        ask(lambda gatherer: given.extend(gatherer.billing(DAYS)), on_billing=answer)
    assert not any(gathered.error for gathered in given)


def test_an_answer_of_no_day_may_be_the_missing_one(ask: Callable[..., Any]) -> None:
    """A day that is missing says what was answered instead."""
    answers = [GatheredDay(DAY), None, GatheredDay(DAY + 2 * ONE_DAY)]
    given: list[GatheredDay] = []
    with pytest.raises(PluginError):
        ask(lambda gatherer: given.extend(gatherer.billing(DAYS)), on_billing=lambda days: answers)
    assert given[-1].error == (
        "plugin tiny: billing: the day was not returned (answer 2 should be a GatheredDay, not None)"
    )
