"""Accounting periods: what finance closes.

Each is a UTC calendar month. All other code takes its first day and its end, and parses no id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from chargeback.model.days import ONE_DAY, DayRange, InstantRange, month_of

#: How the id of a period looks.
PERIOD_ID: Final = r"^20[0-9]{2}-(0[1-9]|1[0-2])$"


@dataclass(frozen=True, order=True, slots=True)
class AccountingPeriod:
    """A period, by its first day."""

    start: date

    @classmethod
    def of(cls, day: date) -> AccountingPeriod:
        """Return the period of a UTC day."""
        return cls(month_of(day).start)

    @classmethod
    def named(cls, period_id: str) -> AccountingPeriod:
        """Return the period with an id.

        Raises:
            ValueError: there is none.

        >>> AccountingPeriod.named("2026-10").next.id
        '2026-11'
        """
        if not re.fullmatch(PERIOD_ID, period_id):
            raise ValueError(f"{period_id[:80]!r} is not a month such as 2026-10")
        return cls(date.fromisoformat(f"{period_id}-01"))

    @property
    def id(self) -> str:
        """Its id, such as ``2026-10``."""
        return f"{self.start:%Y-%m}"

    @property
    def name(self) -> str:
        """What people call it, such as ``October 2026``."""
        return f"{self.start:%B %Y}"

    @property
    def days(self) -> DayRange:
        """Its UTC days."""
        return month_of(self.start)

    @property
    def last_day(self) -> date:
        """Its last UTC day."""
        return self.days.end - ONE_DAY

    @property
    def window(self) -> InstantRange:
        """Its instants."""
        return self.days.window

    @property
    def next(self) -> AccountingPeriod:
        """The period after it."""
        return AccountingPeriod(self.days.end)

    @property
    def previous(self) -> AccountingPeriod:
        """The period before it."""
        return AccountingPeriod.of(self.start - ONE_DAY)


def periods_within(first: AccountingPeriod, last: AccountingPeriod) -> list[AccountingPeriod]:
    """Return the periods from one to another, both included."""
    found = []
    period = first
    while period <= last:
        found.append(period)
        period = period.next
    return found


def periods_of(window: InstantRange) -> list[AccountingPeriod]:
    """Return the periods that a window consists of.

    Raises:
        ValueError: it begins or ends within one.
    """
    days = window.days()
    first, last = AccountingPeriod.of(days.start), AccountingPeriod.of(days.end - ONE_DAY)
    if window != InstantRange(first.window.start, last.window.end):
        raise ValueError("should be whole months of UTC: from the first day of one to the last day of another")
    return periods_within(first, last)
