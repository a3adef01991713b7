"""Days in UTC and in local time zones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.days import (
    ONE_DAY,
    DayRange,
    InstantRange,
    has_passed,
    instants,
    month_of,
    parse_instant,
    render_instant,
    zone_named,
)

_DAYS = st.dates(date(2000, 1, 1), date(2099, 12, 1))


@given(_DAYS, st.integers(0, 400), st.integers(1, 31))
def test_windows_cover_a_range_exactly(start: date, length: int, size: int) -> None:
    """The windows of a range contain each of its days once, in order, and none is longer than the limit."""
    whole = DayRange(start, start + timedelta(days=length))
    windows = list(whole.windows(size))
    assert [day for window in windows for day in window] == list(whole)
    assert all(1 <= len(window) <= size for window in windows)


def test_a_day_of_23_hours() -> None:
    """A local day on which the clock goes forward has 23 hours, and the next begins where it ends."""
    zone = ZoneInfo("Europe/Berlin")
    change = instants(date(2026, 3, 29), date(2026, 3, 29), zone)
    assert change.end - change.start == timedelta(hours=23)
    assert instants(date(2026, 3, 30), date(2026, 3, 30), zone).start == change.end


def test_a_day_whose_midnight_is_skipped_begins_after_the_gap() -> None:
    """Where the clock jumps over midnight, the day begins at the first instant that exists."""
    began = instants(date(2018, 11, 4), date(2018, 11, 4), ZoneInfo("America/Sao_Paulo")).start
    assert began == datetime(2018, 11, 4, 3, tzinfo=UTC)


def test_days_touched_by_instants() -> None:
    """A half-open range of instants includes its last day only if it ends after midnight."""
    midnight = datetime(2026, 1, 2, tzinfo=UTC)
    assert list(InstantRange(midnight - timedelta(hours=1), midnight).days()) == [date(2026, 1, 1)]
    assert list(InstantRange(midnight - timedelta(hours=1), midnight + timedelta(seconds=1)).days()) == [
        date(2026, 1, 1),
        date(2026, 1, 2),
    ]


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "UTC\x00", "/etc/localtime"])
def test_unknown_zones_are_refused(name: str) -> None:
    """Anything other than an IANA time zone raises a clear error."""
    with pytest.raises(ValueError, match="is not an IANA time zone"):
        zone_named(name)


def test_instants_are_read_with_and_without_offset() -> None:
    """A time without offset is UTC; any other is converted to UTC; both are written with Z."""
    assert render_instant(parse_instant("2026-01-01T00:00:00")) == "2026-01-01T00:00:00Z"
    assert render_instant(parse_instant("2026-01-01T02:00:00+02:00")) == "2026-01-01T00:00:00Z"
    with pytest.raises(ValueError, match="is not an ISO 8601"):
        parse_instant("yesterday")


def test_a_gap_has_passed_when_it_lies_on_either_side_of_now() -> None:
    """A gap has passed if the last instant is None, that long ago, or further ahead than the gap."""
    now, gap = datetime(2026, 1, 31, 12, tzinfo=UTC), timedelta(hours=24)
    assert has_passed(gap, None, now)
    for hours, passed in ((-25, True), (-24, True), (-23, False), (0, False), (23, False), (25, True)):
        assert has_passed(gap, now + timedelta(hours=hours), now) is passed


def test_ends_of_months() -> None:
    """Each month ends on its last calendar day."""
    assert [(month_of(date(2026, month, 15)).end - ONE_DAY).day for month in range(1, 13)] == [
        *(31, 28, 31, 30, 31, 30),
        *(31, 31, 30, 31, 30, 31),
    ]
