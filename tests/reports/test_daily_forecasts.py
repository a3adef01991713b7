"""Forecasts of selected rows and of the values of a column, from the facts of a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal

import pytest

from chargeback.access.scope import RowScope
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.daily_forecasts import ForecastAnswer, ForecastRequest, daily_forecasts
from chargeback.reports.forecast import scheduled_types
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from chargeback.store.queries.selection import Selection
from tests.support.sources import DAY, Laboratory, line

DAYS = DayRange(DAY - timedelta(days=69), DAY + ONE_DAY)
FEE_DAY = (DAY + timedelta(days=4)).day


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """Yield seventy days of 100 and a monthly fee; one identity uses three times as much as another."""
    with Laboratory(tmp_path_factory.mktemp("laboratory"), days=70) as opened:
        opened.share(DAYS)
        opened.sources.lines = {day: [line("100", day=day)] for day in DAYS}
        for day in DAYS:
            if day.day == FEE_DAY:
                opened.sources.lines[day].append(line("40", day=day, product="KAFKA_BASE"))
        opened.run()
        yield opened


def found(laboratory: Laboratory, by: str | None = None, scope: RowScope | None = None) -> ForecastAnswer:
    """Return the expected cost of the next ten days."""
    with (
        closing(QueryEngine()) as engine,
        open_reader(engine, laboratory.store, CancellationToken(), LookupCaches(), scope=scope) as reader,
    ):
        asked = ForecastRequest(Selection.of_days(DAYS), DAYS, DAY + timedelta(days=10), by, 5)
        return daily_forecasts(reader, asked, "USD", lambda values: {str(each): f"Name of {each}" for each in values})


def test_the_fee_comes_on_its_day(laboratory: Laboratory) -> None:
    """The fee is expected on its day of the month, and every other day has the usual cost."""
    with (
        closing(QueryEngine()) as engine,
        open_reader(engine, laboratory.store, CancellationToken(), LookupCaches()) as reader,
    ):
        assert scheduled_types(reader, DAYS) == ("KAFKA_BASE",)
    days = found(laboratory).total.days
    assert days is not None
    assert {each.p50 for each in days.points} == {Decimal(100), Decimal(140)}
    assert [each.date.day for each in days.points if each.p50 == 140] == [FEE_DAY]


def test_each_value_is_forecast_by_itself(laboratory: Laboratory) -> None:
    """Every value has a forecast with its name and its part of the fee, the most expensive first."""
    answer = found(laboratory, by="identity_id")
    assert [(each.value, each.name) for each in answer.items] == [("sa-a", "Name of sa-a"), ("sa-b", "Name of sa-b")]
    first = answer.items[0].days
    assert first is not None
    assert min(each.p50 for each in first.points) == 75
    assert max(each.p50 for each in first.points) > 75
    assert (answer.actual_to, answer.until) == (DAY, DAY + timedelta(days=10))


def test_a_scope_is_forecast_by_its_own(laboratory: Laboratory) -> None:
    """A caller with a scope gets a forecast of the visible rows."""
    days = found(laboratory, scope=RowScope.of({"identity_id": ["sa-b"]})).total.days
    assert days is not None
    assert min(each.p50 for each in days.points) == 25
