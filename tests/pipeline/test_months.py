"""The first open month is told once it can be closed."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from unittest.mock import Mock

import pytest

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline import months
from chargeback.store.control.events import read_events
from tests.support.sources import DAY, Laboratory

DECEMBER = AccountingPeriod(date(2025, 12, 1))
DAYS = DayRange(DECEMBER.start, DAY + ONE_DAY)


def told(laboratory: Laboratory) -> list[str]:
    """The months that were told."""
    laboratory.run()
    with laboratory.store.control.read() as connection:
        return [each["subject"] for each in read_events(connection, after=0, kind="period.ready", limit=9)]


def test_a_month_is_told_when_its_last_day_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while nobody closes months, not while a day of it is missing, not for the month that goes on, and once."""
    books = Mock(first_open=None)
    monkeypatch.setattr(months, "read_books", lambda _: books)
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
