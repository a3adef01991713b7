"""Sums of whole days are read once, and are those of the present files."""

from __future__ import annotations

import random
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.facts.tables import BILLING_TABLE
from chargeback.store.queries.daily_totals import DayTotals
from chargeback.store.queries.datasets import BILLING_LINES
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import days_from, line, new_facts, write_lines

DAYS = days_from(date(2026, 1, 1), 8)
ALL = DayRange(DAYS[0], DAYS[-1] + ONE_DAY)


def test_they_follow_the_files(tmp_path: Path) -> None:
    """Whatever days are replaced, and whichever are asked for with much or little room: the present sums."""
    random_ = random.Random(3)
    facts = new_facts(tmp_path)
    stored: dict[date, Decimal] = {}
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        for totals in (DayTotals(), DayTotals(room=3)):
            for _ in range(12):
                for day in random_.sample(DAYS, 2):
                    stored[day] = Decimal(random_.randrange(10**14)).scaleb(-12)
                    write_lines(facts, [line(day, f"{stored[day]:f}"), line(day, "1", resource="lkc-2")])
                first, last = sorted(random_.choices(DAYS, k=2))
                found = totals.load(
                    TenantReader(cursor, facts, TagIndex()), BILLING_LINES, DayRange(first, last + ONE_DAY)
                )
                assert found == {day: amount + 1 for day, amount in stored.items() if first <= day <= last}


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """What is remembered needs no file any more."""
    facts = new_facts(tmp_path)
    write_lines(facts, [line(day, "2.5") for day in DAYS])
    totals = DayTotals()
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        reader = TenantReader(cursor, facts, TagIndex())
        first = totals.load(reader, BILLING_LINES, ALL)
        for folder in (tmp_path / BILLING_TABLE).glob("date=*"):
            shutil.rmtree(folder)
        assert totals.load(reader, BILLING_LINES, ALL) == first == dict.fromkeys(DAYS, Decimal("2.5"))
