"""What stands out of what is charged: at constant prices, without credits and fees, on complete days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.access.scope import RowScope
from chargeback.model.anomalies import Floors
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.anomalies import AnomaliesAnswer, Asked, anomalies
from chargeback.store.control.days import read_days
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from tests.support.sources import DAY, Laboratory, line

LENGTH = 30
DAYS = DayRange(DAY - (LENGTH - 1) * ONE_DAY, DAY + ONE_DAY)
WILD = DAY - 5 * ONE_DAY


def bill(day: date, quantity: int = 100, price: str = "1", **more: Any) -> Any:
    """A line with a quantity and a price; of another product or resource, if that is said."""
    amount = Decimal(quantity)
    return line(str(amount * Decimal(price)), day=day, quantity=amount, unit_price=Decimal(price), unit="GB", **more)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Thirty days of 100, on each of which one identity uses three times as much as another."""
    with Laboratory(tmp_path / "laboratory", days=LENGTH) as opened:
        opened.share(DAYS)
        opened.sources.lines = {day: [bill(day)] for day in DAYS}
        yield opened


def found(laboratory: Laboratory, scope: RowScope | None = None) -> AnomaliesAnswer:
    """What stands out after a run."""
    laboratory.run()
    store = laboratory.store
    with store.control.read() as connection:
        states = {each.tracking_date: each for each in read_days(connection)}
    with (
        closing(QueryEngine()) as engine,
        open_reader(engine, store, CancellationToken(), LookupCaches(), scope=scope) as reader,
    ):
        asked = Asked(DayRange(DAY - 9 * ONE_DAY, DAY + ONE_DAY), Floors(), 10)
        return anomalies(reader, states, asked, "USD", lambda ids: {each: f"Name of {each}" for each in ids})


def stories(answer: AnomaliesAnswer) -> list[tuple[str, date, float]]:
    """Who, when, and how much."""
    return [(each.identity_id, each.first_date, each.impact) for each in answer.items]


def test_who_ran_wild_is_found(laboratory: Laboratory) -> None:
    """On its day, with a sentence; both pay their part of it."""
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    answer = found(laboratory)
    assert stories(answer) == [("sa-a", WILD, 150.0), ("sa-b", WILD, 50.0)]
    first = answer.items[0]
    assert (first.state, first.direction) == ("resolved", "up")
    assert first.sentence == f"Name of sa-a was charged 225.00 USD for KAFKA on {WILD}, 3.0 times the usual 75.00 USD"
    assert (answer.judged_through, answer.not_judged, answer.series, answer.more) == (DAY, [], 2, 0)


def test_a_price_stands_out_of_nothing(laboratory: Laboratory) -> None:
    """Nor do credits, nor a fee on the first of each month."""
    for day in DayRange(WILD, DAY + ONE_DAY):
        laboratory.sources.lines[day] = [bill(day, price="3")]
    laboratory.sources.lines[WILD].append(line("-5000", day=WILD, product="PROMO_CREDIT"))
    for day in DAYS:
        if day.day == 1:
            laboratory.sources.lines[day].append(line("900", day=day, product="KAFKA_BASE"))
    assert stories(found(laboratory)) == []


def test_a_scope_sees_its_own(laboratory: Laboratory) -> None:
    """To the digits, and nothing of others."""
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    answer = found(laboratory, RowScope.of({"identity_id": ["sa-b"]}))
    assert (stories(answer), answer.series) == ([("sa-b", WILD, 50.0)], 1)


def test_a_tenant_without_costs(laboratory: Laboratory) -> None:
    """Nothing stands out of nothing."""
    laboratory.sources.lines = {}
    answer = found(laboratory)
    assert (answer.items, answer.series) == ([], 0)
