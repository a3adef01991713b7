"""Time buckets that follow a zone's calendar, as SQL.

A zone is a handful of offsets from UTC, each valid for some months. Adding the offset of its segment to a timestamp
and dividing by the length of a day is some ten times faster than asking the database's own calendar per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from chargeback.model.days import DayRange, start_of_day
from chargeback.store.queries.scan import microseconds

BUCKETS: Final = ("hour", "day", "week", "month", "all")

_STEP = timedelta(hours=6)
_SECOND: Final = 1_000_000
_HOUR: Final = 3600 * _SECOND
_DAY: Final = 24 * _HOUR


@dataclass(frozen=True)
class Bucket:
    """How rows are put into time buckets.

    ``columns`` are the expressions to group by: ``bucket`` and, for hours, ``utc_offset`` (seconds): when the clock
    is put back, an hour comes twice, with different offsets. ``order`` sorts buckets by time, ``label`` writes them.
    """

    columns: Mapping[str, str]
    order: str
    label: str


def bucket(unit: str, zone: ZoneInfo, days: DayRange) -> Bucket:
    """Buckets of ``unit`` (one of :data:`BUCKETS`) in ``zone``, for rows of the UTC ``days``; ``all`` is a single one,
    with the first day as its label."""
    if unit == "all":
        return Bucket(columns={"bucket": f"DATE '{days.start}'"}, order="bucket", label="bucket::VARCHAR")
    segments = _segments(zone, days)
    local = f"(epoch_us(timestamp) + {_offset_sql(segments, _SECOND)})"
    if unit == "hour":
        return Bucket(
            columns={"bucket": f"({local} // {_HOUR})", "utc_offset": _offset_sql(segments, 1)},
            order=f"(bucket * {_HOUR} - utc_offset * {_SECOND})",
            label=f"strftime(make_timestamp(bucket * {_HOUR}), '%Y-%m-%dT%H:00:00') || {_offset_label(segments)}",
        )
    in_utc = segments == ((0, 0),)
    day = "date" if in_utc else f"(DATE '1970-01-01' + ({local} // {_DAY})::INTEGER)"
    key = day if unit == "day" else f"date_trunc('{unit}', {day})::DATE"
    return Bucket(columns={"bucket": key}, order="bucket", label="bucket::VARCHAR")


@lru_cache(maxsize=256)
def _segments(zone: ZoneInfo, days: DayRange) -> tuple[tuple[int, int], ...]:
    """(first microsecond since 1970, offset in seconds) of every stretch of constant offset, ascending."""
    moment, end = start_of_day(days.start), start_of_day(days.end)
    offset = _offset(zone, moment)
    segments = [(0, offset)]
    while moment < end:
        following = min(moment + _STEP, end)
        if _offset(zone, following) != offset:
            change = _change(zone, moment, following)
            offset = _offset(zone, following)
            segments.append((microseconds(change), offset))
        moment = following
    return tuple(segments)


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second with another offset than ``before``'s, up to ``after``."""
    first = _offset(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if _offset(zone, middle) == first:
            before = middle
        else:
            after = middle
    return after


def _offset(zone: ZoneInfo, instant: datetime) -> int:
    offset = instant.astimezone(UTC).astimezone(zone).utcoffset() or timedelta()
    return offset // timedelta(seconds=1)


def _offset_sql(segments: tuple[tuple[int, int], ...], unit: int) -> str:
    """The offset at ``timestamp``, in seconds times ``unit``."""
    if len(segments) == 1:
        return f"({segments[0][1] * unit})::BIGINT"
    later = "".join(
        f" WHEN epoch_us(timestamp) >= {start} THEN {offset * unit}" for start, offset in reversed(segments[1:])
    )
    return f"(CASE{later} ELSE {segments[0][1] * unit} END)::BIGINT"


def _offset_label(segments: tuple[tuple[int, int], ...]) -> str:
    cases = "".join(f" WHEN {offset} THEN '{offset_text(offset)}'" for offset in {offset for _, offset in segments})
    return f"(CASE utc_offset{cases} END)"


def offset_text(seconds: int) -> str:
    """An offset from UTC as ISO 8601 writes it.

    >>> offset_text(-12600), offset_text(0)
    ('-03:30', '+00:00')
    """
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
