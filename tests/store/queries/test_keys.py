"""Buckets follow the calendar of the time zone, through daylight saving and unusual offsets."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import DayRange
from chargeback.store.queries.keys import BUCKETS, bucket, offset_text
from chargeback.store.queries.scan import microseconds
from chargeback.store.queries.sql_format import named
from tests.support.readers import Ask

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Africa/Casablanca",
]


def _expected(instant: datetime, unit: str, zone: ZoneInfo) -> str:
    local = instant.astimezone(zone)
    day = local.date()
    if unit == "all":
        return "2025-10-01"
    if unit == "hour":
        offset = local.utcoffset() or timedelta()
        return f"{local:%Y-%m-%dT%H}:00:00{offset_text(int(offset.total_seconds()))}"
    if unit == "week":
        day -= timedelta(days=day.weekday())
    if unit == "month":
        day = day.replace(day=1)
    return day.isoformat()


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize("unit", BUCKETS)
def test_every_hour_of_a_year_is_in_the_bucket_of_the_calendar(ask: Ask, name: str, unit: str) -> None:
    """The labels equal those of Python's time zones, for every quarter of an hour of a year."""
    zone = ZoneInfo(name)
    days = DayRange(date(2025, 10, 1), date(2026, 10, 1))
    start = datetime(2025, 10, 1, tzinfo=UTC)
    moments = [start + timedelta(minutes=15 * step) for step in range(365 * 96)]
    when = bucket(unit, zone, days)
    sql = f"""
        WITH t AS (SELECT unnest($us::BIGINT[]) AS us), r AS (
            SELECT us, make_timestamptz(us) AS timestamp, make_timestamp(us)::DATE AS date FROM t),
        k AS (SELECT us, {named(when.columns)} FROM r)
        SELECT {when.label} FROM k ORDER BY us"""
    labels = ask(lambda cursor: cursor.rows(sql, {"us": [microseconds(moment) for moment in moments]}))
    assert [label for (label,) in labels] == [_expected(moment, unit, zone) for moment in moments]


def test_an_hour_that_comes_twice_is_two_buckets_in_order(ask: Ask) -> None:
    """When the clock is put back, the two hours have different offsets and are ordered by time."""
    when = bucket("hour", ZoneInfo("Europe/Berlin"), DayRange(date(2026, 10, 24), date(2026, 10, 27)))
    moments = [microseconds(datetime(2026, 10, 25, hour, tzinfo=UTC)) for hour in (0, 1)]
    sql = f"""
        WITH r AS (SELECT make_timestamptz(unnest($us::BIGINT[])) AS timestamp),
             k AS (SELECT {named(when.columns)} FROM r)
        SELECT {when.label} FROM k ORDER BY {when.order}"""
    assert ask(lambda cursor: cursor.rows(sql, {"us": moments})) == [
        ("2026-10-25T02:00:00+02:00",),
        ("2026-10-25T02:00:00+01:00",),
    ]
