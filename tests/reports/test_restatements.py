"""The difference between two moments is that of what was served at each of them."""

from __future__ import annotations

import random
from contextlib import ExitStack
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.model.days import DayRange
from chargeback.model.money import difference, total
from chargeback.model.run_request import RunRequest
from chargeback.reports.restatements import causes_between, restatement
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
    """Whatever the days and the moments are: amounts before and after, totals, and nothing that is the same."""
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
    """Compare one difference; return how many items it has."""
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
