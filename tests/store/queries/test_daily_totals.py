"""Sums per day, computed once for each file, and rows as stored."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from chargeback.model import chargeback
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, FactTables, read_day
from chargeback.store.queries.daily_totals import DayTotals, daily_totals, is_finer_than, stored_rows
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, Dataset
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, line, new_facts, write_lines, write_shares
from tests.support.readers import Read

DAYS = days_from(date(2026, 1, 30), 3)
ALL = DayRange.spanning(DAYS)


def sums(
    read: Read, by: Sequence[str], most: tuple[int, str] | None = None, dataset: Dataset = CHARGEBACKS
) -> list[tuple[Any, ...]]:
    """Return the sums over all days, as tuples."""
    batches = read(lambda reader: list(daily_totals(reader, dataset, ALL, by, most)))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_sums_are_ordered_by_columns_then_by_day(read: Read, facts: FactTables) -> None:
    """Each series is ordered by day, one series after the other; a missing value is an empty text."""
    write_shares(
        facts,
        [Share(day, who, "1.5", environment=env) for day in DAYS[:2] for who, env in (("b", None), ("a", "env-1"))]
        + [Share(DAYS[0], "a", "0.000000000001", line="line-2")],
    )
    assert sums(read, ["identity_id", "environment_id"]) == [
        (DAYS[0], "a", "env-1", Decimal("1.500000000001")),
        (DAYS[1], "a", "env-1", Decimal("1.5")),
        (DAYS[0], "b", "", Decimal("1.5")),
        (DAYS[1], "b", "", Decimal("1.5")),
    ]
    assert sums(read, []) == [(DAYS[0], Decimal("3.000000000001")), (DAYS[1], Decimal("3"))]


def test_billing_lines_are_summed_by_what_they_cost(read: Read, facts: FactTables) -> None:
    """Billing lines are summed in the same way."""
    write_lines(facts, [line(DAYS[0], "2"), line(DAYS[0], "-0.5", product="SUPPORT"), line(DAYS[0], "1", hour=3)])
    found = sums(read, ["product_type"], dataset=BILLING_LINES)
    assert found == [(DAYS[0], "KAFKA_NUM_CKUS", Decimal(3)), (DAYS[0], "SUPPORT", Decimal("-0.5"))]


def test_the_limit_counts_day_by_day(read: Read, facts: FactTables) -> None:
    """The largest values are chosen for each day separately; other columns keep their values, and no amount is lost."""
    amounts = {DAYS[0]: ("3", "2", "1"), DAYS[1]: ("1", "2", "-3")}
    write_shares(
        facts, [Share(day, who, a, line=who) for day, of in amounts.items() for who, a in zip("abc", of, strict=True)]
    )
    found = sums(read, ["identity_id", "product_type"], (1, "OTHER"))
    assert [(day, who, int(amount)) for day, who, _, amount in found] == [
        (DAYS[0], "OTHER", 3),
        (DAYS[1], "OTHER", 3),
        (DAYS[0], "a", 3),
        (DAYS[1], "c", -3),
    ]
    assert sums(read, ["product_type"], (1, "OTHER"))[0][1] == "KAFKA_NUM_CKUS"


def test_rows_as_they_are_stored(read: Read, facts: FactTables) -> None:
    """All columns are returned in the order and types of the table, and no rows outside the range."""
    write_shares(facts, [Share(day, who, "1") for day in DAYS for who in "ba"])
    batches = read(lambda reader: list(stored_rows(reader, CHARGEBACKS, DayRange(DAYS[0], DAYS[2]))))
    stored = pa.Table.from_batches(batches)
    assert stored.schema == chargeback.CHARGEBACKS
    expected = pa.concat_tables([read_day(facts, CHARGEBACKS_TABLE, day) for day in DAYS[:2]])
    assert stored.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(("hour", "finer"), [(0, ["week", "month"]), (5, ["day", "week", "month"])])
def test_how_fine_rows_are(read: Read, facts: FactTables, hour: int, finer: list[str]) -> None:
    """Rows are finer than a unit of time if one is inside it, not at its start."""
    write_shares(facts, [Share(DAYS[0], "a", "1", hour=hour)])
    units = ("day", "week", "month")
    found = read(lambda reader: [unit for unit in units if is_finer_than(reader, CHARGEBACKS, ALL, unit)])
    assert found == finer


def test_nothing_stored_is_nothing(read: Read, facts: FactTables) -> None:
    """Days without files have no sums and no rows, and are not finer than a day."""
    empty = DayRange(DAYS[0], DAYS[0] + ONE_DAY)
    assert sums(read, ["identity_id"]) == []
    assert read(lambda reader: list(stored_rows(reader, CHARGEBACKS, empty))) == []
    assert not read(lambda reader: is_finer_than(reader, CHARGEBACKS, empty, "day"))


JANUARY_DAYS = days_from(date(2026, 1, 1), 8)
ALL_JANUARY = DayRange(JANUARY_DAYS[0], JANUARY_DAYS[-1] + ONE_DAY)


def test_they_follow_the_files(tmp_path: Path) -> None:
    """For any replaced days, any range and any memory limit, the sums are the present ones."""
    random_ = random.Random(3)
    facts = new_facts(tmp_path)
    stored: dict[date, Decimal] = {}
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        for totals in (DayTotals(), DayTotals(room=3)):
            for _ in range(12):
                for day in random_.sample(JANUARY_DAYS, 2):
                    stored[day] = Decimal(random_.randrange(10**14)).scaleb(-12)
                    write_lines(facts, [line(day, f"{stored[day]:f}"), line(day, "1", resource="lkc-2")])
                first, last = sorted(random_.choices(JANUARY_DAYS, k=2))
                found = totals.load(
                    TenantReader(cursor, facts, TagIndex()), BILLING_LINES, DayRange(first, last + ONE_DAY)
                )
                assert found == {day: amount + 1 for day, amount in stored.items() if first <= day <= last}


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """Sums in memory need no file."""
    facts = new_facts(tmp_path)
    write_lines(facts, [line(day, "2.5") for day in JANUARY_DAYS])
    totals = DayTotals()
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        reader = TenantReader(cursor, facts, TagIndex())
        first = totals.load(reader, BILLING_LINES, ALL_JANUARY)
        for folder in (tmp_path / BILLING_TABLE).glob("date=*"):
            shutil.rmtree(folder)
        assert totals.load(reader, BILLING_LINES, ALL_JANUARY) == first == dict.fromkeys(JANUARY_DAYS, Decimal("2.5"))
