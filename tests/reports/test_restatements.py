"""The difference between two instants is that of the data served at each of them."""

from __future__ import annotations

import random
from contextlib import ExitStack
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.model.days import DayRange
from chargeback.model.money import difference, total
from chargeback.model.run_request import RunRequest
from chargeback.reports.restatements import RestatedDay, causes_between, restated_days, restatement
from chargeback.store.control.day_revisions import (
    BILL_CHANGED,
    FIRST,
    MANUAL,
    METRICS_RETURNED,
    POLICY_CHANGED,
    REPAIR,
    RETENTION,
    Revision,
    read_day_revisions,
)
from chargeback.store.control.days import DayDataset
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, Laboratory, line

DAYS = [DAY - timedelta(days=number) for number in range(3)]
BY = ("identity_id", "product_type")
ZERO = Decimal(0)


@pytest.mark.extensive
def test_items_are_the_sums_of_both_moments(tmp_path: Path) -> None:
    """For random days and instants, items are the sums that changed, and add up to the totals."""
    chance = random.Random(5)
    with Laboratory(tmp_path, days=len(DAYS)) as laboratory, QueryEngine() as engine:
        instants = [NOW + timedelta(minutes=number) for number in range(8)]
        for instant in instants:
            _change(laboratory, chance)
            laboratory.clock = FixedClock(instant)
            laboratory.run(RunRequest(recalculate=True, accept_less=True))
        seen = 0
        for _ in range(40):
            first, second = sorted(chance.sample(instants, 2))
            days = sorted(chance.choices(DAYS, k=2))
            selection = Selection.of_days(DayRange(days[0], days[1] + timedelta(days=1)))
            seen += _check(laboratory, engine, selection, first, second)
        assert seen > 40


def _check(laboratory: Laboratory, engine: QueryEngine, selection: Selection, first: datetime, second: datetime) -> int:
    """Check one difference; return the number of its items."""
    with ExitStack() as opened:

        def _reader(as_of: datetime) -> TenantReader:
            reader = open_reader(engine, laboratory.store, CancellationToken(), LookupCaches(), as_of=as_of)
            return opened.enter_context(reader)

        before, after = _reader(first), _reader(second)
        with laboratory.store.control.read() as connection:
            causes = causes_between(connection, first, second)
        found = restatement(before, after, selection, BY, causes, currency="USD", limit=1000)
        then, later = (sums_by(reader, CHARGEBACKS, selection, BY) for reader in (before, after))
    changed = {key for key in then.keys() | later.keys() if then.get(key, ZERO) != later.get(key, ZERO)}
    assert {tuple(item.dimensions.values()): (item.before, item.after) for item in found.items} == {
        key: (then.get(key, ZERO), later.get(key, ZERO)) for key in changed
    }
    assert all(item.causes for item in found.items)
    assert (found.total_before, found.total_after) == (total(then.values()), total(later.values()))
    assert total(item.delta for item in found.items) == difference(found.total_after, found.total_before) == found.delta
    return len(found.items)


def _change(laboratory: Laboratory, chance: random.Random) -> None:
    sources, day = laboratory.sources, chance.choice(DAYS)
    sources.lines[day] = [line(str(chance.randint(1, 200)), day=day)]
    if chance.random() < 0.5:
        sources.lines[day].append(line("7", day=day, product="KAFKA_BASE"))
    part = chance.randint(1, 99)
    sources.totals = {"bytes_in": {("lkc-1", "sa-a"): part, ("lkc-1", "sa-b"): 100 - part}}


def _restated(*contents: tuple[str, str | None, str | None], day: date = DAY) -> list[RestatedDay]:
    """Return the restated days for the contents of one day: each with its cause, its total, and the moved amount."""
    return restated_days(
        Revision(
            DayDataset.CHARGEBACKS,
            day,
            number,
            NOW + timedelta(minutes=number),
            cause,
            total=None if amount is None else Decimal(amount),
            moved=None if moved is None else Decimal(moved),
        )
        for number, (cause, amount, moved) in enumerate(contents, 1)
    )


def test_a_restated_day() -> None:
    """A restated day has its exact first and present totals, and the causes of all changes in between."""
    (found,) = _restated(
        (FIRST, "10.000000000001", None),
        (BILL_CHANGED, "12", "1"),
        (METRICS_RETURNED, "12", "3.5"),
        (BILL_CHANGED, "9.5", "1.25"),
        (REPAIR, "9.5", None),
    )
    assert found == RestatedDay(
        date=DAY,
        first_calculated_at=NOW + timedelta(minutes=1),
        calculated_at=NOW + timedelta(minutes=4),
        revisions=3,
        causes=[BILL_CHANGED, METRICS_RETURNED],
        total_before=Decimal("10.000000000001"),
        total_after=Decimal("9.5"),
        delta=Decimal("-0.500000000001"),
        moved=Decimal("5.75"),
    )


@pytest.mark.parametrize(
    "contents",
    [
        [(FIRST, "10", None)],
        [(FIRST, "10", None), (REPAIR, "10", None)],
        [(FIRST, "10", None), (REPAIR, "10", "0")],
        [(FIRST, "10", None), (POLICY_CHANGED, "10", "0"), (MANUAL, "10", "0")],
        [(FIRST, "10", None), (RETENTION, "0", None)],
        [(FIRST, "10", None), (BILL_CHANGED, "12", "1"), (RETENTION, "0", None)],
        [(FIRST, "10", None), (BILL_CHANGED, "12", "1"), (RETENTION, "0", None), (FIRST, "12", None)],
        [(FIRST, None, None), (REPAIR, "10", None)],
    ],
)
def test_what_restates_nothing(contents: list[tuple[str, str | None, str | None]]) -> None:
    """First contents, repairs, policies with the same amounts, and expired days are not restatements."""
    assert _restated(*contents) == []


@pytest.mark.parametrize(
    ("contents", "delta", "moved"),
    [
        # The payers have changed, but not the total.
        ([(FIRST, "10", None), (POLICY_CHANGED, "10", "4")], "0", "4"),
        # The bill has changed, but not the amounts.
        ([(FIRST, "10", None), (BILL_CHANGED, "10", "0")], "0", "0"),
        ([(FIRST, "10", None), (BILL_CHANGED, "11", "0.5"), (BILL_CHANGED, "10", "0.5")], "0", "1"),
        ([(FIRST, "10", None), (REPAIR, "11", "0.5")], "1", "0.5"),
        # The former rows were lost, or an earlier version recorded no sums.
        ([(FIRST, "10", None), (METRICS_RETURNED, "10", None)], "0", None),
        ([(FIRST, None, None), (BILL_CHANGED, "11", "0.5")], None, "0.5"),
        ([(FIRST, "9", None), (RETENTION, "0", None), (FIRST, "10", None), (MANUAL, "12", "1")], "2", "1"),
    ],
)
def test_what_restates_a_day(
    contents: list[tuple[str, str | None, str | None]], delta: str | None, moved: str | None
) -> None:
    """Every other change is a restatement, even with the same total; an unknown amount is None."""
    (found,) = _restated(*contents)
    assert found.delta == (None if delta is None else Decimal(delta))
    assert found.moved == (None if moved is None else Decimal(moved))


def test_days_as_runs_restate_them(tmp_path: Path) -> None:
    """Of recalculated days, only those with a changed bill are listed, with both amounts."""
    with Laboratory(tmp_path, days=len(DAYS)) as laboratory:
        laboratory.sources.lines = {day: [line("10.1", day=day)] for day in DAYS}
        laboratory.run()
        laboratory.sources.lines[DAYS[1]] = [line("12.5", day=DAYS[1])]
        laboratory.clock = FixedClock(NOW + timedelta(hours=1))
        laboratory.run(RunRequest(recalculate=True))
        with laboratory.store.control.read() as connection:
            (found,) = restated_days(read_day_revisions(connection, DayDataset.CHARGEBACKS))
        assert (found.date, found.causes, found.revisions) == (DAYS[1], [BILL_CHANGED], 1)
        amounts = (found.total_before, found.total_after, found.delta)
        assert amounts == (Decimal("10.1"), Decimal("12.5"), Decimal("2.4"))
        assert found.first_calculated_at < found.calculated_at
