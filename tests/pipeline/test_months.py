"""The first open month is told once it can be closed, and invoices that differ from the bill."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.control.events import read_events
from chargeback.store.control.invoices import Invoice, save_invoice
from tests.support.clock import NOW
from tests.support.sources import DAY, Laboratory

DECEMBER = AccountingPeriod(date(2025, 12, 1))
DAYS = DayRange(DECEMBER.start, DAY + ONE_DAY)


def told(laboratory: Laboratory) -> list[str]:
    """The months that were told."""
    laboratory.run()
    with laboratory.store.control.read() as connection:
        return [each["subject"] for each in read_events(connection, after=0, kind="period.ready", limit=9)]


def invoiced(laboratory: Laboratory, *totals: str) -> list[dict[str, Any]]:
    """What is told of differences after a run, with these invoices."""
    with laboratory.store.control.write() as connection:
        for number, amount in enumerate(totals):
            content = {"kind": "invoice", "status": "final", "total": amount, "tax": "0.00"}
            save_invoice(connection, Invoice(DECEMBER, f"INV-{number}", content, "ann", NOW))
    laboratory.run()
    with laboratory.store.control.read() as connection:
        return [each["body"] for each in read_events(connection, after=0, kind="invoice.differs", limit=9)]


def test_a_month_is_told_when_its_last_day_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while nobody closes months, not while a day of it is missing, not for the month that goes on, and once."""
    books = Mock(first_open=None)
    monkeypatch.setattr("chargeback.pipeline.notices.read_books", lambda _: books)
    with Laboratory(tmp_path / "laboratory", days=len(DAYS) - 1) as laboratory:
        laboratory.share(DAYS)
        assert told(laboratory) == []
        books.first_open = DECEMBER
        assert told(laboratory) == [], "its first day was never gathered"
        laboratory.configure(lookback_days=len(DAYS) + 9)
        assert told(laboratory) == ["period/2025-12"]
        assert told(laboratory) == ["period/2025-12"]
        books.first_open = DECEMBER.next
        assert told(laboratory) == ["period/2025-12"]


def test_an_invoice_that_is_not_what_was_billed_is_told_once(tmp_path: Path) -> None:
    """Once for each difference, when the bill of the month is whole; one that is the same is not."""
    with Laboratory(tmp_path / "laboratory", days=len(DAYS) - 1) as laboratory:
        laboratory.share(DAYS)
        assert invoiced(laboratory, "3000.00") == [], "its first day was never gathered"
        laboratory.configure(lookback_days=len(DAYS) + 9)
        (told,) = invoiced(laboratory)
        assert (told["billed"], told["invoiced"], told["difference"]) == ("3100.00", "3000.00", "-100.00")
        assert (told["period_id"], told["invoices"], told["currency"]) == ("2025-12", ["INV-0"], "USD")
        assert invoiced(laboratory) == [told]
        assert [each["difference"] for each in invoiced(laboratory, "3000.00", "150.00")] == ["-100.00", "50.00"]
        assert len(invoiced(laboratory, "3000.00", "100.00")) == 2
