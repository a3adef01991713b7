"""Budgets in runs: thresholds that are crossed are told once, exactly, and only of what the budget is about."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import Budget, Threshold
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline import look
from chargeback.reports import budgets as reports
from chargeback.store.control.budgets import budget_ratios, read_budget, write_budget
from chargeback.store.control.events import read_events
from tests.support.sources import DAY, Laboratory, line

FIRST = DAY - 3 * ONE_DAY
DAYS = DayRange(FIRST, DAY + ONE_DAY)
MONTH = AccountingPeriod.of(DAY)
WHOLE = len(MONTH.days)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Four days of 100, on each of which one identity uses three times as much as another."""
    with Laboratory(tmp_path / "laboratory", days=4) as opened:
        opened.share(DAYS)
        yield opened


def put(laboratory: Laboratory, monthly: str, *thresholds: tuple[str, str], **more: Any) -> None:
    """Write a budget of what is charged to ``sa-a``: 75 a day."""
    scope = more.pop("scope", {"identity_id": ("sa-a",)})
    found = tuple(Threshold(on, Decimal(percent)) for on, percent in thresholds)  # type: ignore[arg-type]
    budget = Budget("a", "A", scope, None, {}, Decimal(monthly), found)
    with laboratory.store.control.write() as connection:
        before = read_budget(connection, "a")
        write_budget(connection, "a", budget, expected=None if before is None else before.version, who="test")


def told(laboratory: Laboratory) -> list[tuple[str, str, str]]:
    """The kinds of the events of budgets, with what they are about."""
    with laboratory.store.control.read() as connection:
        found = read_events(connection, after=0, kind=None, limit=99)
    return [
        (each["kind"], f"{each['body']['on']} {each['body']['percent']}", each["body"]["to_date"])
        for each in found
        if each["kind"].startswith("budget.")
    ]


def test_a_threshold_is_told_once_a_month(laboratory: Laboratory) -> None:
    """With what is charged to the scope alone; more of it on a later run says nothing new, another threshold does."""
    put(laboratory, "600", ("actual", "50"), ("actual", "80"), ("pace", "200"))
    laboratory.run()
    assert told(laboratory) == [("budget.crossed", "actual 50", "300.00"), ("budget.crossed", "pace 200", "300.00")]
    laboratory.run()
    laboratory.sources.lines[DAY] = [line("340", day=DAY)]
    laboratory.run()
    assert told(laboratory)[2:] == [("budget.crossed", "actual 80", "480.00")]


def test_ratios_are_those_of_the_last_month(laboratory: Laboratory) -> None:
    """Of what is there; for curves."""
    put(laboratory, "600", ("actual", "50"))
    laboratory.run()
    with laboratory.store.control.read() as connection:
        assert budget_ratios(connection) == {"a": (0.5, None)}
    with laboratory.store.control.write() as connection:
        write_budget(connection, "a", None, expected=1, who="test")
    with laboratory.store.control.read() as connection:
        assert budget_ratios(connection) == {}


def test_nothing_is_told_below_a_limit(laboratory: Laboratory) -> None:
    """Nor of a budget that is not there any more."""
    put(laboratory, "1000", ("actual", "80"))
    laboratory.run()
    assert told(laboratory) == []
    with laboratory.store.control.write() as connection:
        write_budget(connection, "a", None, expected=1, who="test")
    laboratory.sources.lines[DAY] = [line("34000", day=DAY)]
    laboratory.run()
    assert told(laboratory) == []


def test_what_has_not_changed_is_not_looked_at(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without news opens no query engine for budgets."""
    put(laboratory, "600", ("actual", "50"))
    laboratory.run()
    laboratory.run()
    monkeypatch.setattr(look, "QueryEngine", lambda: pytest.fail("looked at again"))
    laboratory.run()
    put(laboratory, "500", ("actual", "50"))
    with pytest.raises(pytest.fail.Exception):
        laboratory.run()


def test_a_forecast_is_told_on_its_second_day(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One unusual day is none; what falls far enough below its limit is told as well."""
    expected = {"amount": Decimal(990)}

    def _forecast(_known: object, _currency: str) -> Any:
        return type("Forecast", (), {"expected": expected["amount"]})

    monkeypatch.setattr(reports, "forecast", _forecast)
    put(laboratory, "1000", ("forecast", "95"))
    start = laboratory.clock()

    def run_after(days: int) -> list[str]:
        laboratory.clock = lambda: start + timedelta(days=days)
        day = DAY + days * ONE_DAY
        laboratory.sources.lines[day] = [line("100", day=day)]
        laboratory.run()
        return [kind for kind, _, _ in told(laboratory)]

    assert run_after(0) == []
    assert run_after(1) == ["budget.crossed"]
    expected["amount"] = Decimal(940)
    assert run_after(2) == ["budget.crossed"], "less than three percent below"
    expected["amount"] = Decimal(900)
    assert run_after(3) == ["budget.crossed", "budget.cleared"]


def test_a_bill_that_grows_later_is_late(laboratory: Laboratory) -> None:
    """What crosses a limit of the month before is told as late, once, and only of months that the budget was there."""
    last = MONTH.start - ONE_DAY
    start = laboratory.clock()
    days = DayRange(last - ONE_DAY, last + ONE_DAY)
    laboratory.share(days)
    put(laboratory, "200", ("actual", "90"))
    laboratory.clock = lambda: start - (DAY - last)
    laboratory.configure(lookback_days=40)
    laboratory.run()
    assert told(laboratory) == []
    laboratory.clock = lambda: start
    laboratory.sources.lines[last] = [line("200", day=last)]
    for day in DayRange(MONTH.start, DAY + ONE_DAY):
        laboratory.sources.lines[day] = [line("1", day=day)]
    laboratory.run()
    assert told(laboratory) == [("budget.late", "actual 90", "225.00")]
    laboratory.run()
    assert len(told(laboratory)) == 1
