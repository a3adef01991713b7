"""Periods by their names, and the periods that they are compared with.

A named period ends on the last calculated day, because later days would look cheap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from chargeback.model.days import ONE_DAY, DayRange, InstantRange, month_of
from chargeback.store.queries.selection import Selection

#: The names for :func:`named_period`: ``7d``, ``month``, ``last-month``, the same for weeks, quarters and years, or
#: ``2026-10``.
PERIOD: Final = r"^([1-9][0-9]{0,2}d|(last-)?(week|month|quarter|year)|[12][0-9]{3}-(0[1-9]|1[0-2]))$"
_DATES: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.\.[0-9]{4}-[0-9]{2}-[0-9]{2}"
#: The names of compared periods, or two dates.
COMPARISON: Final = rf"^(previous|year|none|{_DATES})$"
#: The same if there must be another period.
OTHER_PERIOD: Final = rf"^(previous|year|{_DATES})$"

_UNITS: Final = ("week", "month", "quarter", "year")
# There are no costs before or after these years.
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2998
_LEAP_DAY: Final = (2, 29)


@dataclass(frozen=True)
class CalendarPeriod:
    """Calendar days from ``start`` to ``end``, both inclusive."""

    start: date
    end: date

    @property
    def day_range(self) -> DayRange:
        """The same days, as a range whose end is not part of it."""
        return DayRange(self.start, self.end + ONE_DAY)

    @classmethod
    def between(cls, start: date, end: date) -> CalendarPeriod:
        """Return the period from ``start`` to ``end``.

        Raises:
            ValueError: it ends before it begins, or no costs are that old or that young.
        """
        if end < start:
            raise ValueError("should not end before it begins")
        if start.year < _FIRST_YEAR or end.year > _LAST_YEAR:
            raise ValueError(f"should lie within the years {_FIRST_YEAR} to {_LAST_YEAR}")
        return cls(start, end)

    @property
    def days(self) -> int:
        """Return the number of its days."""
        return (self.end - self.start).days + 1

    @property
    def before(self) -> CalendarPeriod:
        """Return the period of the same length that ends before this one begins."""
        return CalendarPeriod(self.start - timedelta(days=self.days), self.start - ONE_DAY)

    @property
    def year_before(self) -> CalendarPeriod:
        """Return the same dates a year earlier."""
        return CalendarPeriod(_year_before(self.start), _year_before(self.end))


def months_before(period: CalendarPeriod) -> CalendarPeriod | None:
    """Return as many months before a period of whole months; None for other periods.

    >>> months_before(CalendarPeriod(date(2026, 3, 1), date(2026, 4, 30)))
    CalendarPeriod(start=datetime.date(2026, 1, 1), end=datetime.date(2026, 2, 28))
    """
    first, last = month_of(period.start).start, month_of(period.end)
    if (first, last.end - ONE_DAY) != (period.start, period.end):
        return None
    months = (last.start.year - first.year) * 12 + last.start.month - first.month + 1
    place = first.year * 12 + first.month - 1 - months
    return CalendarPeriod(date(place // 12, place % 12 + 1, 1), first - ONE_DAY)


@dataclass(frozen=True)
class Comparison:
    """A period with its selected rows, and the other period, if there is one."""

    period: CalendarPeriod
    compared: CalendarPeriod | None
    selection: Selection
    previous: InstantRange | None


def named_period(name: str, last: date) -> CalendarPeriod:
    """Return the period of a name that matches :data:`PERIOD`; ``last`` is the last calculated day.

    >>> named_period("7d", date(2026, 11, 14))
    CalendarPeriod(start=datetime.date(2026, 11, 8), end=datetime.date(2026, 11, 14))
    >>> named_period("last-month", date(2026, 1, 14)).start
    datetime.date(2025, 12, 1)
    >>> named_period("last-week", date(2026, 11, 14))  # a Saturday
    CalendarPeriod(start=datetime.date(2026, 11, 2), end=datetime.date(2026, 11, 8))
    """
    if re.fullmatch(r"\d+d", name):
        return CalendarPeriod(last - timedelta(days=int(name[:-1]) - 1), last)
    if name.startswith("last-"):
        unit = name.removeprefix("last-")
        end = _first_of(unit, last) - ONE_DAY
        return CalendarPeriod(_first_of(unit, end), end)
    if name in _UNITS:
        return CalendarPeriod(_first_of(name, last), last)
    month = date.fromisoformat(f"{name}-01")
    return CalendarPeriod(month, month_of(month).end - ONE_DAY)


def _first_of(unit: str, day: date) -> date:
    """Return the first day of the week, month, quarter or year of a day."""
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case _:
            return day.replace(month=1, day=1)


def compared_period(comparison: str, period: CalendarPeriod) -> CalendarPeriod | None:
    """Return the period that ``period`` is compared with, for a text that matches :data:`COMPARISON`; None for
    ``none``.

    Raises:
        ValueError: the text names dates that do not exist, or end before they begin.
        OverflowError: the period is before the first year.
    """
    match comparison:
        case "none":
            return None
        case "previous":
            return period.before
        case "year":
            return period.year_before
    first, _, last = comparison.partition("..")
    try:
        dates = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        raise ValueError("should name dates of the calendar, such as 2026-09-01..2026-09-30") from None
    return CalendarPeriod.between(*dates)


def _year_before(day: date) -> date:
    if (day.month, day.day) == _LEAP_DAY:
        day -= ONE_DAY
    return day.replace(year=day.year - 1)
