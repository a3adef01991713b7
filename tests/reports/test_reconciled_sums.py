"""Sums of the bill and of what was charged for it, by day, product type and resource."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.model.billing import BillingLine
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import total
from chargeback.reports.reconciliation import (
    PRODUCT_TYPE,
    RESOURCE_ID,
    CollectedSums,
    CoveredDay,
    ReconciledSums,
)
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, line, new_facts, write_lines, write_shares

DAYS = days_from(date(2026, 1, 25), 14)
TYPES = ("KAFKA_NUM_CKUS", "KAFKA_STORAGE", "SUPPORT")
RESOURCES = ("lkc-1", "lkc-2", "lcc-3")
#: All cases of a range read the files only once.
CASES_PER_RANGE = 40
RANGES = 15


@dataclass
class World:
    """The stored data, and the same data in plain Python."""

    facts: FactTables
    lines: list[BillingLine]
    shares: list[Share]


def random_world(folder: Path, random_: random.Random) -> World:
    """Return two weeks of random bills; some days have none, and some charges differ from their line."""
    world = World(new_facts(folder), [], [])
    for day in DAYS:
        if random_.random() < 0.2:
            continue
        for product in TYPES:
            for resource in random_.sample(RESOURCES, random_.randint(0, 3)):
                units = random_.randrange(-(10**6), 10**15)
                cost = Decimal(units).scaleb(-12)
                world.lines.append(line(day, f"{cost:f}", product=product, resource=resource))
                world.shares += random_shares(random_, day, product, resource, cost)
    write_lines(world.facts, world.lines)
    write_shares(world.facts, world.shares)
    return world


def random_shares(random_: random.Random, day: date, product: str, resource: str, cost: Decimal) -> Iterator[Share]:
    """Yield the charges for a line: mostly all of it, sometimes one unit more or nothing."""
    kind = random_.random()
    if kind < 0.1:
        return
    part = Decimal(random_.randrange(10**12)).scaleb(-12)
    rest = total([cost, part.copy_negate()]) + (Decimal("1e-12") if kind < 0.2 else 0)
    yield Share(day, "sa-1", f"{part:f}", product=product, resource=resource)
    yield Share(day, UNALLOCATED, f"{rest:f}", product=product, resource=resource)


def random_days(random_: random.Random, days: DayRange) -> list[CoveredDay]:
    """Return the days with random states."""
    return [
        CoveredDay(
            day,
            is_gathered=random_.random() < 0.8,
            is_calculated=random_.random() < 0.7,
            is_superseded=random_.choice([True, False, None]),
            revision=random_.choice([None, 1, 2, 3]),
            calculated_at=random_.choice([None, datetime(2026, 2, random_.randint(1, 28), 1, 2, 3, 456789, UTC)]),
        )
        for day in days
    ]


def key_of(each: BillingLine | Share, by: str | None) -> str:
    """Return the value to which a line or a share belongs."""
    if by is None:
        return str(each.day)
    if by == RESOURCE_ID:
        return each.resource_id if isinstance(each, BillingLine) else each.resource
    return each.product_type if isinstance(each, BillingLine) else each.product


def expected(world: World, days: list[CoveredDay], by: str | None) -> list[ReconciledSums]:
    """Return the expected sums, in plain Python."""
    by_day: dict[tuple[str, date], tuple[list[BillingLine], list[Share]]] = defaultdict(lambda: ([], []))
    known = {each.day: each for each in days}
    if by is None:
        by_day.update({(str(day), day): ([], []) for day in known})
    for each in world.lines:
        if each.day in known:
            by_day[key_of(each, by), each.day][0].append(each)
    for share in world.shares:
        if share.day in known:
            by_day[key_of(share, by), share.day][1].append(share)
    return [
        expected_sums(value, [(known[day], *parts) for (key, day), parts in by_day.items() if key == value])
        for value in sorted({value for value, _ in by_day})
    ]


def expected_sums(value: str, parts: Iterable[tuple[CoveredDay, list[BillingLine], list[Share]]]) -> ReconciledSums:
    """Return the expected sums of one value."""
    parts = list(parts)
    lines, shares = [line for _, of_day, _ in parts for line in of_day], [row for *_, rows in parts for row in rows]
    waiting = [part for part in parts if not part[0].is_calculated and (part[0].is_gathered or part[1])]
    superseded = {day.is_superseded for day, *_ in parts} - {None}
    return ReconciledSums(
        value,
        billed=total(each.total_cost for each in lines),
        charged=total(Decimal(each.amount) for each in shares),
        unallocated=total(Decimal(each.amount) for each in shares if each.identity == UNALLOCATED),
        pending=total(each.total_cost for _, of_day, _ in waiting for each in of_day),
        by_topic=Decimal(0),
        lines=len(lines),
        rows=len(shares),
        differs=any(
            day.is_calculated
            and total(each.total_cost for each in of_day) != total(Decimal(each.amount) for each in rows)
            for day, of_day, rows in parts
        ),
        waits=bool(waiting),
        is_calculated=any(day.is_calculated for day, *_ in parts),
        is_superseded=any(superseded) if superseded else None,
        revision=max((day.revision for day, *_ in parts if day.revision is not None), default=None),
        calculated_at=max((day.calculated_at for day, *_ in parts if day.calculated_at is not None), default=None),
    )


@pytest.fixture
def engine() -> Iterator[QueryEngine]:
    """Yield a query engine."""
    with QueryEngine(threads=1) as engine:
        yield engine


@pytest.mark.extensive
def test_every_grouping_is_the_sum_of_its_lines_and_rows(tmp_path: Path, engine: QueryEngine) -> None:
    """For 600 random days, states and groupings, sums equal those of lines and rows; all have the same total."""
    random_ = random.Random(11)
    world = random_world(tmp_path, random_)
    for _ in range(RANGES):
        first, last = sorted(random_.choices(DAYS, k=2))
        days = DayRange(first, last + ONE_DAY)
        with engine.cursor(CancellationToken()) as cursor:
            reader = TenantReader(cursor, world.facts, TagIndex())
            sums = CollectedSums(reader, days)
            assert sums.product_types() == {
                day: {each.product_type for each in world.lines if each.day == day}
                for day in {each.day for each in world.lines if each.day in days}
            }
            for _ in range(CASES_PER_RANGE):
                covered = random_days(random_, days)
                by = random_.choice([None, PRODUCT_TYPE, RESOURCE_ID])
                found = sums.reconciled(covered, by)
                assert found == expected(world, covered, by)
                assert total(each.billed for each in found) == total(
                    each.total_cost for each in world.lines if each.day in days
                )


def test_days_without_anything(tmp_path: Path, engine: QueryEngine) -> None:
    """Days without data have sums of zero, and no product types."""
    with engine.cursor(CancellationToken()) as cursor:
        reader = TenantReader(cursor, new_facts(tmp_path), TagIndex())
        sums = CollectedSums(reader, DayRange(DAYS[0], DAYS[2]))
        assert sums.product_types() == {}
        (first, second) = sums.reconciled([CoveredDay(DAYS[0]), CoveredDay(DAYS[1], is_gathered=True)])
        assert (first.value, first.billed, first.waits) == (str(DAYS[0]), Decimal(0), False)
        assert (second.value, second.rows, second.waits) == (str(DAYS[1]), 0, True)
        assert sums.reconciled([CoveredDay(DAYS[0])], PRODUCT_TYPE) == []
