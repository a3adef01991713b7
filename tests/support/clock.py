"""The time of the tests: one fixed day, whenever they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

from chargeback.model.days import ONE_DAY, start_of_day, utc_now

TODAY: Final = date(2026, 1, 31)
#: The current time in this process.
NOW: Final = datetime.combine(TODAY, time(12), UTC)
#: A program that gives a process another time.
FAKETIME: Final = "faketime"
#: The time of a process under ``faketime``, in which durations are still correct.
FAKED: Final = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": str(Path(__file__).with_name("faketime"))}


@dataclass(frozen=True)
class FixedClock:
    """A stopped clock. It can be sent to another process."""

    at: datetime = NOW

    def __call__(self) -> datetime:
        """Return the fixed time."""
        return self.at


@dataclass(frozen=True)
class DayClock:
    """A clock that stays within one day. It can be sent to another process.

    If it is created on that day, it returns the current time, and stops at the end of that day. If it is created on
    another day, it starts at noon.
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
    """Return the prefix of a command that starts its process within ``day``: empty, unless midnight has passed since.

    In that case the process starts an hour before midnight. A served provider returns the current time: its clock and
    that of the process must differ by less than a day.
    """
    end = start_of_day(day + ONE_DAY)
    now = utc_now()
    return [] if now < end else [FAKETIME, "-f", f"-{(now - end + timedelta(hours=1)).total_seconds():.0f}s"]
