"""Events of budgets and months: each is recorded once, and only for its subject."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import Budget, Threshold
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline import run_facts
from chargeback.reports import budgets as reports
from chargeback.store.control.budgets import budget_ratios, read_budget, write_budget
from chargeback.store.control.events import read_events
from chargeback.store.control.invoices import Invoice, save_invoice
from tests.support.clock import NOW
from tests.support.sources import DAY, Laboratory, line

FIRST = DAY - 3 * ONE_DAY
DAYS = DayRange(FIRST, DAY + ONE_DAY)
MONTH = AccountingPeriod.of(DAY)
WHOLE = len(MONTH.days)
DECEMBER = AccountingPeriod(date(2025, 12, 1))
SINCE_DECEMBER = DayRange(DECEMBER.start, DAY + ONE_DAY)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant of four days of 100, in which one identity uses three times as much as another."""
    with Laboratory(tmp_path / "laboratory", days=4) as opened:
        opened.share(DAYS)
        yield opened


def put(laboratory: Laboratory, monthly: str, *thresholds: tuple[str, str], **more: Any) -> None:
    """Write a budget for the charges of ``sa-a``: 75 a day."""
    scope = more.pop("scope", {"identity_id": ("sa-a",)})
    found = tuple(Threshold(on, Decimal(percent)) for on, percent in thresholds)  # type: ignore[arg-type]
    budget = Budget("a", "A", scope, None, {}, Decimal(monthly), found)
    with laboratory.store.control.write() as connection:
        before = read_budget(connection, "a")
        write_budget(connection, "a", budget, expected=None if before is None else before.version, who="test")


def told(laboratory: Laboratory) -> list[tuple[str, str, str]]:
    """Return the kinds of budget events, each with its threshold and amount."""
    with laboratory.store.control.read() as connection:
        found = read_events(connection, after=0, kind=None, limit=99)
    return [
        (each["kind"], f"{each['body']['on']} {each['body']['percent']}", each["body"]["to_date"])
        for each in found
        if each["kind"].startswith("budget.")
    ]


def test_a_threshold_is_told_once_a_month(laboratory: Laboratory) -> None:
    """A threshold has one event a month, with the amount of the scope; another threshold has another event."""
    put(laboratory, "600", ("actual", "50"), ("actual", "80"), ("pace", "200"))
    laboratory.run()
    assert told(laboratory) == [("budget.crossed", "actual 50", "300.00"), ("budget.crossed", "pace 200", "300.00")]
    laboratory.run()
    laboratory.sources.lines[DAY] = [line("340", day=DAY)]
    laboratory.run()
    assert told(laboratory)[2:] == [("budget.crossed", "actual 80", "480.00")]


def test_ratios_are_those_of_the_last_month(laboratory: Laboratory) -> None:
    """Ratios are those of the last month, and of existing budgets only."""
    put(laboratory, "600", ("actual", "50"))
    laboratory.run()
    with laboratory.store.control.read() as connection:
        assert budget_ratios(connection) == {"a": (0.5, None)}
    with laboratory.store.control.write() as connection:
        write_budget(connection, "a", None, expected=1, who="test")
    with laboratory.store.control.read() as connection:
        assert budget_ratios(connection) == {}


def test_nothing_is_told_below_a_limit(laboratory: Laboratory) -> None:
    """There is no event below a limit, nor for a removed budget."""
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
    monkeypatch.setattr(run_facts, "QueryEngine", lambda: pytest.fail("evaluated again"))
    laboratory.run()
    put(laboratory, "500", ("actual", "50"))
    with pytest.raises(pytest.fail.Exception):
        laboratory.run()


def test_a_forecast_is_told_on_its_second_day(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forecast is reported on the second day above its limit, and again when it falls far enough below."""
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
    """If a bill of the previous month crosses a limit later, that is reported as late, once, and only for months in
    which the budget existed."""
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


def ready_months(laboratory: Laboratory) -> list[str]:
    """Return the months that were reported as complete."""
    laboratory.run()
    with laboratory.store.control.read() as connection:
        return [each["subject"] for each in read_events(connection, after=0, kind="period.ready", limit=9)]


def invoiced(laboratory: Laboratory, *totals: str) -> list[dict[str, Any]]:
    """Run with these invoices, and return the reported differences."""
    with laboratory.store.control.write() as connection:
        for number, amount in enumerate(totals):
            content = {"kind": "invoice", "status": "final", "total": amount, "tax": "0.00"}
            save_invoice(connection, Invoice(DECEMBER, f"INV-{number}", content, "ann", NOW))
    laboratory.run()
    with laboratory.store.control.read() as connection:
        return [each["body"] for each in read_events(connection, after=0, kind="invoice.differs", limit=9)]


def test_a_month_is_told_when_its_last_day_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A month is reported once, when its last day is calculated, if months are closed at all; the current month is
    not."""
    books = Mock(first_open=None)
    monkeypatch.setattr("chargeback.pipeline.notices.read_books", lambda _: books)
    with Laboratory(tmp_path / "laboratory", days=len(SINCE_DECEMBER) - 1) as laboratory:
        laboratory.share(SINCE_DECEMBER)
        assert ready_months(laboratory) == []
        books.first_open = DECEMBER
        assert ready_months(laboratory) == [], "its first day was never gathered"
        laboratory.configure(lookback_days=len(SINCE_DECEMBER) + 9)
        assert ready_months(laboratory) == ["period/2025-12"]
        assert ready_months(laboratory) == ["period/2025-12"]
        books.first_open = DECEMBER.next
        assert ready_months(laboratory) == ["period/2025-12"]


def test_an_invoice_that_is_not_what_was_billed_is_told_once(tmp_path: Path) -> None:
    """Each difference has one event, when the bill of the month is complete; an equal invoice has none."""
    with Laboratory(tmp_path / "laboratory", days=len(SINCE_DECEMBER) - 1) as laboratory:
        laboratory.share(SINCE_DECEMBER)
        assert invoiced(laboratory, "3000.00") == [], "its first day was never gathered"
        laboratory.configure(lookback_days=len(SINCE_DECEMBER) + 9)
        (told,) = invoiced(laboratory)
        assert (told["billed"], told["invoiced"], told["difference"]) == ("3100.00", "3000.00", "-100.00")
        assert (told["period_id"], told["invoices"], told["currency"]) == ("2025-12", ["INV-0"], "USD")
        assert invoiced(laboratory) == [told]
        assert [each["difference"] for each in invoiced(laboratory, "3000.00", "150.00")] == ["-100.00", "50.00"]
        assert len(invoiced(laboratory, "3000.00", "100.00")) == 2
