"""Comparison of external costs with the stored ones; the sums of both sides are kept."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import Connection

from chargeback.model.days import DayRange
from chargeback.model.money import total
from chargeback.reports.external_costs.comparison import ExternalReconciliation, compare_costs
from chargeback.reports.external_costs.files import CostMapping, ExternalCost, read_costs
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from tests.support.databases import control_database
from tests.support.facts import Share, days_from, line, new_facts, write_lines, write_shares

DAYS = days_from(date(2026, 1, 1), 4)
ALL = DayRange(DAYS[0], DAYS[-1])
UNIT = Decimal("1e-12")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """Yield a connection to a control database without names."""
    with control_database("sqlite", tmp_path) as database, database.read() as found:
        yield found


def compare(
    reader: TenantReader, connection: Connection, costs: Sequence[ExternalCost], how: CostMapping
) -> ExternalReconciliation:
    """Return the comparison of the costs of all days but the last."""
    return compare_costs(reader, connection, costs, how, ALL, currency="USD")


def mapping(entity: str, *columns: str) -> CostMapping:
    """Return a mapping with an amount and these columns."""
    named = {name: f"the {name}" for name in columns}
    return CostMapping.model_validate({"entity": entity, "columns": {"amount": "a"} | named})


def test_both_sides(tmp_path: Path, connection: Connection) -> None:
    """For 500 random files: both sides sum to their totals, every difference is exact, the largest come first, and the
    last day is not counted."""
    random_ = random.Random(17)
    facts = new_facts(tmp_path)
    stored = [
        (day, f"lkc-{n}", product, Decimal(random_.randrange(1, 10**14)).scaleb(-12))
        for day in DAYS
        for n in range(3)
        for product in ("A", "B")
    ]
    write_lines(facts, [line(day, f"{cost:f}", resource=r, product=p) for day, r, p, cost in stored])
    write_shares(facts, [Share(day, f"sa-{r}", f"{cost:f}", resource=r, product=p) for day, r, p, cost in stored])
    inside = [each for each in stored if each[0] in ALL]
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        reader = TenantReader(cursor, facts, TagIndex())
        for number in range(500):
            by, prefix = random_.choice([("resource_id", ""), ("identity_id", "sa-")])
            columns = random_.sample(["entity", "product_type", "date"], random_.randint(0, 3))
            known = [each for each in stored if random_.random() < 0.9] if number else stored
            costs = [
                ExternalCost(
                    day if "date" in columns else None,
                    (f"{prefix}{r}" if "entity" in columns else None, p if "product_type" in columns else None),
                    cost if not number or random_.random() < 0.7 else cost + random_.choice([Decimal(-5), UNIT]),
                )
                for day, r, p, cost in known
            ]
            found = compare(reader, connection, costs, mapping(by, *columns))
            counted = [cost for cost in costs if cost.day is None or cost.day in ALL]
            assert (found.lines, found.outside) == (len(counted), len(costs) - len(counted))
            assert found.total.theirs == total(cost.amount for cost in counted)
            assert found.total.ours == total(cost for *_, cost in inside)
            sizes = [abs(item.delta) for item in found.items]
            assert sizes == sorted(sizes, reverse=True)
            assert len({(item.entity, item.product_type) for item in found.items}) == len(found.items)
            for item in found.items:
                ours = [
                    cost
                    for _, r, p, cost in inside
                    if item.entity in (None, f"{prefix}{r}") and item.product_type in (None, p)
                ]
                theirs = [cost.amount for cost in counted if cost.key == (item.entity, item.product_type)]
                assert item.ours == (total(ours) if ours else None)
                assert item.theirs == (total(theirs) if theirs else None)


def test_the_same(tmp_path: Path, connection: Connection) -> None:
    """Equal costs have no difference; a cost that only the file has is a difference."""
    facts = new_facts(tmp_path)
    write_lines(facts, [line(DAYS[0], "1.5")])
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        reader = TenantReader(cursor, facts, TagIndex())
        cost = ExternalCost(None, ("lkc-1", None), Decimal("1.5"))
        (same,) = compare(reader, connection, [cost], mapping("resource_id", "entity")).items
        assert not same.delta
        more = ExternalCost(None, ("lkc-2", None), Decimal(-2))
        (first, second) = compare(reader, connection, [cost, more], mapping("resource_id", "entity")).items
        assert (first.entity, first.theirs, first.ours, first.delta) == ("lkc-2", Decimal(-2), None, Decimal(2))
        assert not second.delta


def test_every_decimal_place_counts(tmp_path: Path, connection: Connection) -> None:
    """Nothing in the file is rounded: a difference in the thirteenth decimal place is found."""
    facts = new_facts(tmp_path)
    write_lines(facts, [line(DAYS[0], "0.3")])
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        reader = TenantReader(cursor, facts, TagIndex())
        by_entity = mapping("resource_id", "entity")
        costs = read_costs("a,the entity\n0.1,lkc-1\n0.2000000000004,lkc-1\n", by_entity, "USD")
        found = compare(reader, connection, costs, by_entity)
        assert (found.total.theirs, found.items[0].delta) == (Decimal("0.3000000000004"), Decimal("-0.0000000000004"))
