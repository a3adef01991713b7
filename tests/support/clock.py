"""The time that tests live in: one fixed day, whenever they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

from chargeback.model.days import ONE_DAY, start_of_day, utc_now

TODAY: Final = date(2026, 1, 31)
#: The present of everything that happens in this process.
NOW: Final = datetime.combine(TODAY, time(12), UTC)
#: What a process under ``faketime`` is told: what is measured between two moments stays right.
FAKED: Final = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": str(Path(__file__).with_name("faketime"))}


@dataclass(frozen=True)
class FixedClock:
    """A clock that stands still. It can be sent to another process."""

    at: datetime = NOW

    def __call__(self) -> datetime:
        """Return where it stands."""
        return self.at


@dataclass(frozen=True)
class DayClock:
    """A clock that does not leave one day. It can be sent to another process.

    It tells the present if it began within the day, and stands still at its end when midnight has passed since. On any
    other day it goes on from noon.
    """

    day: date
    began: datetime = field(default_factory=utc_now)

    def __call__(self) -> datetime:
        """Return the time."""
        now, first = utc_now(), start_of_day(self.day)
        last = first + ONE_DAY - timedelta(microseconds=1)
        if not first <= self.began <= last:
            now = first + timedelta(hours=12) + (now - self.began)
        return min(now, last)


def words_within(day: date) -> list[str]:
    """Return the words before a command that begin its process within ``day``: none, unless midnight has passed since.

    It begins an hour before midnight then. A provider that is served tells the present: its clock and that of the
    process must stay less than a day apart.
    """
    end = start_of_day(day + ONE_DAY)
    now = utc_now()
    return [] if now < end else ["faketime", "-f", f"-{(now - end + timedelta(hours=1)).total_seconds():.0f}s"]
