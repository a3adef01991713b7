"""Days and time zones.

The service calculates in UTC days. A query may name any IANA zone: its dates become a half-open range of instants, and
time buckets follow that zone's calendar, including daylight saving.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

ONE_DAY = timedelta(days=1)

#: Returns the present instant, in UTC. Code that needs the time takes a clock as an argument: :func:`utc_now`, unless a
#: caller passes another.
Clock = Callable[[], datetime]


@dataclass(frozen=True, order=True)
class DayRange:
    """UTC days from ``start`` (inclusive) to ``end`` (exclusive)."""

    start: date
    end: date

    def __iter__(self) -> Iterator[date]:
        for offset in range((self.end - self.start).days):
            yield self.start + timedelta(days=offset)

    def __len__(self) -> int:
        return max((self.end - self.start).days, 0)

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and self.start <= day < self.end

    @property
    def window(self) -> InstantRange:
        """The instants of the days."""
        return InstantRange(start_of_day(self.start), start_of_day(self.end))

    def windows(self, days: int) -> Iterator[DayRange]:
        """Yield the range in consecutive pieces of at most ``days`` days."""
        start = self.start
        while start < self.end:
            end = min(start + timedelta(days=days), self.end)
            yield DayRange(start, end)
            start = end

    @classmethod
    def of_day(cls, day: date) -> DayRange:
        """Return the range of one day; of the last day of the calendar, which no other follows, an empty one.

        >>> len(DayRange.of_day(date(2026, 1, 31))), len(DayRange.of_day(date.max))
        (1, 0)
        """
        return cls(day, day if day == date.max else day + ONE_DAY)

    @classmethod
    def spanning(cls, days: Iterable[date]) -> DayRange:
        """Return the smallest range that contains all of ``days`` (at least one)."""
        ordered = sorted(days)
        return cls(ordered[0], ordered[-1] + ONE_DAY)


@dataclass(frozen=True)
class InstantRange:
    """Instants from ``start`` (inclusive) to ``end`` (exclusive), both in UTC."""

    start: datetime
    end: datetime

    def days(self) -> DayRange:
        """Return the UTC days that the range overlaps."""
        last = self.end - timedelta(microseconds=1)
        return DayRange(self.start.date(), last.date() + ONE_DAY)


def week_of(day: date) -> DayRange:
    """Return the week of a day, from Monday.

    >>> str(week_of(date(2026, 1, 1)).start)
    '2025-12-29'
    """
    monday = day - timedelta(days=day.weekday())
    return DayRange(monday, monday + timedelta(days=7))


def month_of(day: date) -> DayRange:
    """Return the month of a day.

    >>> str(month_of(date(2028, 2, 1)).end)
    '2028-03-01'
    """
    first = day.replace(day=1)
    return DayRange(first, (first + timedelta(days=31)).replace(day=1))


def months_later(day: date, months: int) -> date:
    """Return the same day some months later, or the last one of a shorter month.

    >>> str(months_later(date(2026, 1, 31), 1)), str(months_later(date(2026, 11, 30), 3))
    ('2026-02-28', '2027-02-28')
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def first_day_of(unit: str, day: date) -> date:
    """Return the first day of the week or the month of a day; of another unit of time, the day itself.

    >>> str(first_day_of("week", date(2026, 1, 1)))
    '2025-12-29'
    """
    match unit:
        case "week":
            return week_of(day).start
        case "month":
            return month_of(day).start
    return day


def start_of_day(day: date, zone: ZoneInfo | None = None) -> datetime:
    """Return the first instant of ``day`` in ``zone`` (UTC by default), in UTC.

    If the clock skips midnight, this is the first instant after the gap.
    """
    local = datetime.combine(day, time(), tzinfo=zone or UTC)
    return local.astimezone(UTC)


def instants(first: date, last: date, zone: ZoneInfo | None = None) -> InstantRange:
    """Return the instants of the calendar days ``first`` to ``last`` (both inclusive) in ``zone``."""
    return InstantRange(start_of_day(first, zone), start_of_day(last + ONE_DAY, zone))


def zone_named(name: str) -> ZoneInfo:
    """Return the IANA zone of that name.

    Raises:
        ValueError: there is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is not an IANA time zone, such as Europe/Berlin") from None


def utc_now() -> datetime:
    """Return the present instant, in UTC."""
    return datetime.now(UTC)


def utc_today() -> date:
    """Return the present UTC day."""
    return utc_now().date()


def has_passed(gap: timedelta, since: datetime | None, now: datetime) -> bool:
    """Return whether ``gap`` has passed at ``now`` since an instant, or there is no such instant.

    An instant that is in the future by more than ``gap`` was written before the clock was set back, so it counts as
    passed.
    """
    return since is None or abs(now - since) >= gap


def render_instant(instant: datetime) -> str:
    """Return ISO 8601 in UTC with a ``Z``; without fractions of a second if they are zero.

    >>> render_instant(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_instant(text: str) -> datetime:
    """Return the instant of an ISO 8601 text, in UTC; without an offset it is UTC.

    Raises:
        ValueError: the text is not an ISO 8601 date and time.
    """
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is not an ISO 8601 date and time, such as 2026-01-31T12:00:00Z") from None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
