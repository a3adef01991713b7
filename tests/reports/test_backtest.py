"""What would have been told on past days, as they were known then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from chargeback.model.anomalies import Criteria, Floors
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.backtest import BackTest, back_test
from chargeback.store.queries.engine import QueryEngine
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, Laboratory, line

KNOWN = DAY - timedelta(days=3)
FLOORS = Criteria()
DAYS = DayRange(DAY - timedelta(days=45), KNOWN + ONE_DAY)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Six weeks of 100, then a day of 300 that a late bill takes back, and one of 400, each run in its turn."""
    with Laboratory(tmp_path / "laboratory", days=46) as opened:
        opened.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 1}}
        opened.sources.lines = {day: [line("100", day=day)] for day in DAYS}
        run_on(opened, 0, "100")
        run_on(opened, 1, "300")
        run_on(opened, 2, "400", late="100")
        yield opened


def run_on(laboratory: Laboratory, later: int, amount: str, late: str | None = None) -> None:
    """Run when one more day is billed; the bill of the day before may have changed meanwhile."""
    day = KNOWN + later * ONE_DAY
    laboratory.sources.lines[day] = [line(amount, day=day)]
    if late is not None:
        laboratory.sources.lines[day - ONE_DAY] = [line(late, day=day - ONE_DAY)]
    laboratory.clock = FixedClock(NOW - timedelta(days=3 - later))
    laboratory.run()


def backtested(laboratory: Laboratory, by: Criteria = FLOORS) -> BackTest:
    """What would have been told from the day before the first run on."""
    first = NOW.date() - timedelta(days=4)
    with closing(QueryEngine()) as engine:
        return back_test(laboratory.store, engine, DayRange(first, NOW.date()), by, "USD")


def test_each_evening_knows_what_was_known(laboratory: Laboratory) -> None:
    """An alarm that a late bill has taken back since would have been one all the same."""
    found = backtested(laboratory)
    evening = NOW.date() - timedelta(days=2)
    assert found.unknown == [NOW.date() - timedelta(days=4)]
    assert [(each.raised, each.story.impact, each.outcome) for each in found.alarms] == [
        (evening, 200.0, "withdrawn"),
        (evening + ONE_DAY, 300.0, "stands"),
    ]
    assert {each.days_late for each in found.alarms} == {(evening - KNOWN).days - 1}


def test_other_floors_tell_less(laboratory: Laboratory) -> None:
    """That is what it is for."""
    assert [each.story.impact for each in backtested(laboratory, Criteria(Floors(amount=250))).alarms] == [300.0]
    assert backtested(laboratory, Criteria(Floors(amount=1000))).alarms == []


def test_what_another_story_tells_is_told_once(laboratory: Laboratory) -> None:
    """As in a run: of two product groups of an identity on the same day, the larger one."""
    for day, lines in laboratory.sources.lines.items():
        other = replace(lines[0], product_category="CONNECT", product_type="KAFKA_STORAGE")
        laboratory.sources.lines[day] = [*lines, replace(other, total_cost=lines[0].total_cost / 5)]
    laboratory.run()
    with closing(QueryEngine()) as engine:
        last = DayRange(NOW.date() - ONE_DAY, NOW.date())
        found = back_test(laboratory.store, engine, last, FLOORS, "USD")
    assert [(each.story.product_category, each.outcome) for each in found.alarms] == [("KAFKA", "stands")]
