"""Reports as of past days, with the data known on those days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.model.anomalies import Criteria, Floors
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.backtest import BackTest, back_test, forecast_back_test
from chargeback.store.queries.engine import QueryEngine
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, Laboratory, line

KNOWN = DAY - timedelta(days=3)
FLOORS = Criteria()
DAYS = DayRange(DAY - timedelta(days=45), KNOWN + ONE_DAY)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield six weeks of 100, a day of 300 that a late bill corrects, and a day of 400, each run in turn."""
    with Laboratory(tmp_path / "laboratory", days=46) as opened:
        opened.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 1}}
        opened.sources.lines = {day: [line("100", day=day)] for day in DAYS}
        run_on(opened, 0, "100")
        run_on(opened, 1, "300")
        run_on(opened, 2, "400", late="100")
        yield opened


def run_on(laboratory: Laboratory, later: int, amount: str, late: str | None = None) -> None:
    """Run after one more day is billed; ``late`` replaces the bill of the day before."""
    day = KNOWN + later * ONE_DAY
    laboratory.sources.lines[day] = [line(amount, day=day)]
    if late is not None:
        laboratory.sources.lines[day - ONE_DAY] = [line(late, day=day - ONE_DAY)]
    laboratory.clock = FixedClock(NOW - timedelta(days=3 - later))
    laboratory.run()


def backtested(laboratory: Laboratory, by: Criteria = FLOORS) -> BackTest:
    """Return the back test from the day before the first run on."""
    first = NOW.date() - timedelta(days=4)
    with closing(QueryEngine()) as engine:
        return back_test(laboratory.store, engine, DayRange(first, NOW.date()), by, "USD")


def test_each_evening_knows_what_was_known(laboratory: Laboratory) -> None:
    """Each evening has the data known then; an alarm that a late bill withdrew later is included."""
    found = backtested(laboratory)
    evening = NOW.date() - timedelta(days=2)
    assert found.unknown == [NOW.date() - timedelta(days=4)]
    assert [(each.raised, each.story.impact, each.outcome) for each in found.alarms] == [
        (evening, 200.0, "withdrawn"),
        (evening + ONE_DAY, 300.0, "stands"),
    ]
    assert {each.days_late for each in found.alarms} == {(evening - KNOWN).days - 1}


def test_other_floors_tell_less(laboratory: Laboratory) -> None:
    """Higher floors give fewer alarms."""
    assert [each.story.impact for each in backtested(laboratory, Criteria(Floors(amount=250))).alarms] == [300.0]
    assert backtested(laboratory, Criteria(Floors(amount=1000))).alarms == []


def test_what_another_story_tells_is_told_once(laboratory: Laboratory) -> None:
    """Of two product groups of an identity on the same day, only the larger one is reported, as in a run."""
    for day, lines in laboratory.sources.lines.items():
        other = replace(lines[0], product_category="CONNECT", product_type="KAFKA_STORAGE")
        laboratory.sources.lines[day] = [*lines, replace(other, total_cost=lines[0].total_cost / 5)]
    laboratory.run()
    with closing(QueryEngine()) as engine:
        last = DayRange(NOW.date() - ONE_DAY, NOW.date())
        found = back_test(laboratory.store, engine, last, FLOORS, "USD")
    assert [(each.story.product_category, each.outcome) for each in found.alarms] == [("KAFKA", "stands")]


def test_what_months_were_expected_to_cost(tmp_path: Path) -> None:
    """Forecasts use the bills known on each evening, and are compared with the present cost of the month."""
    december = DayRange(date(2025, 12, 1), date(2026, 1, 1))
    last = date(2025, 12, 21)
    with Laboratory(tmp_path / "laboratory", days=90) as laboratory:
        laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 1}}
        days = DayRange(date(2025, 11, 1), december.end)
        laboratory.sources.lines = {day: [line("100", day=day)] for day in days if day <= last}
        laboratory.clock = FixedClock(NOW + (last - DAY))
        laboratory.run()
        laboratory.sources.lines = {day: [line("110" if day > last else "100", day=day)] for day in days}
        laboratory.clock = FixedClock(NOW)
        laboratory.run()
        evening = laboratory.clock().date() + (last - DAY)
        with closing(QueryEngine()) as engine:
            asked = DayRange(evening - ONE_DAY, evening + ONE_DAY)
            found = forecast_back_test(laboratory.store, engine, asked, "USD")
    assert found.left_out == [evening - ONE_DAY], "nothing was known"
    (made,) = found.made
    assert (made.evening, made.known, made.expected, made.last_week) == (evening, last, Decimal(3100), Decimal(3100))
    assert made.actual == Decimal(3200)
    assert (made.is_inside, made.off(made.expected)) == (False, -100 / 3200)
