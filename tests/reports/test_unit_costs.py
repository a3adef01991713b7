"""Unit costs: sums of rows divided by the measurements of the same subjects, resources and days."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.errors import SumTooLarge
from chargeback.model.days import instants
from chargeback.model.money import total
from chargeback.model.usage import USAGE
from chargeback.reports.unit_costs import UNIT_MEASURES, Unit, UnitCosts, unit_cost, unit_costs
from chargeback.store.facts.tables import USAGE_TABLE, FactTables
from chargeback.store.queries.selection import Selection, equal
from tests.support.facts import Share, days_from, replace_day, write_shares
from tests.support.laws import examples
from tests.support.readers import Read

FIRST = date(2026, 1, 1)
DAYS = days_from(FIRST, 4)
ALL = Selection(instants(FIRST, DAYS[-1]))
WRITTEN = UNIT_MEASURES["gib_in"]
ONE = Decimal(1)

shares = st.lists(
    st.builds(
        Share,
        day=st.sampled_from(DAYS),
        identity=st.sampled_from(["sa-1", "sa-2"]),
        amount=st.decimals("-99", "99999", places=12).map(str),
        resource=st.sampled_from(["lkc-1", "lkc-2", "lcc-1"]),
        product=st.sampled_from(["KAFKA_STORAGE", "KAFKA_BASE"]),
    ),
    min_size=1,
    max_size=12,
)
measured = st.dictionaries(
    st.tuples(st.sampled_from(DAYS), st.sampled_from(["lkc-1", "lkc-2"]), st.sampled_from(["sa-1", "sa-2", "sa-3"])),
    st.decimals(0, 10**12, places=6),
    max_size=12,
)

Measured = dict[tuple[date, str, str], Decimal]


def write_usage(facts: FactTables, used: Measured) -> None:
    """Store measurements of all days, together with those of another measure."""
    for day in DAYS:
        rows = [
            {"date": day, "measure": "bytes_in", "resource_id": place, "subject": who, "value": value}
            for (on, place, who), value in sorted(used.items())
            if on == day
        ]
        rows.append(
            {"date": day, "measure": "bytes_out", "resource_id": "lkc-1", "subject": "sa-1", "value": Decimal(7)}
        )
        replace_day(facts, USAGE_TABLE, day, pa.Table.from_pylist(rows, schema=USAGE))


def counts(row: Share, used: Measured) -> bool:
    """Return whether a row's day was measured for its resource or, if that resource never is, for any."""
    places = {place for _, place, _ in used}
    if row.resource in places:
        return any((on, place) == (row.day, row.resource) for on, place, _ in used)
    return any(on == row.day for on, _, _ in used)


@given(rows=shares, used=measured)
@settings(max_examples=examples(30))
def test_by_hand(read: Read, facts: FactTables, rows: list[Share], used: Measured) -> None:
    """In every group and in the total, no cost is lost and no usage is counted twice."""
    write_shares(facts, [*rows, *(Share(day, "sa-0", "0") for day in DAYS)])
    write_usage(facts, used)
    found: UnitCosts = read(lambda reader: unit_costs(reader, WRITTEN, ALL, ("identity_id",), 10))
    groups: dict[str, list[Share]] = defaultdict(list)
    for row in rows:
        groups[row.identity].append(row)
    named = {item.dimensions["identity_id"]: item for item in found.items}
    items = {identity: item for identity, item in named.items() if identity != "sa-0"}
    assert items.keys() == groups.keys()
    for identity, own in groups.items():
        kept = [row for row in own if counts(row, used)]
        pairs = {(row.day, row.resource, identity) for row in kept} & used.keys()
        usage = sum((used[pair] for pair in pairs), Decimal(0)) if pairs else None
        item = items[identity]
        assert item.amount == total(Decimal(row.amount) for row in kept)
        assert item.excluded_amount == total(Decimal(row.amount) for row in own if row not in kept)
        assert (item.usage, item.unit_cost) == unit_cost(item.amount, usage, WRITTEN.unit)
        assert item.days == len({row.day for row in kept})
    assert found.total.amount == total(item.amount for item in found.items)
    assert total([found.total.amount, found.total.excluded_amount]) == total(Decimal(row.amount) for row in rows)


def test_groups_that_share_usage(read: Read, facts: FactTables) -> None:
    """The usage of an identity counts in each of its product types, and once in the total."""
    write_shares(facts, [Share(FIRST, "sa-1", "1", product=product, line=product) for product in ("A", "B")])
    write_usage(facts, {(FIRST, "lkc-1", "sa-1"): Decimal(2**30)})
    found: UnitCosts = read(lambda reader: unit_costs(reader, WRITTEN, ALL, ("product_type",), 10))
    assert [(item.usage, item.unit_cost) for item in found.items] == [(ONE, ONE), (ONE, ONE)]
    assert (found.total.usage, found.total.unit_cost) == (ONE, 2 * ONE)


def test_the_most_expensive_come_first(read: Read, facts: FactTables) -> None:
    """The most expensive groups are listed, and all groups are counted."""
    write_shares(facts, [Share(FIRST, name, amount) for name, amount in (("sa-1", "1"), ("sa-2", "3"), ("sa-3", "2"))])
    write_usage(facts, {(FIRST, "lkc-1", "sa-1"): Decimal(1)})
    found: UnitCosts = read(lambda reader: unit_costs(reader, WRITTEN, ALL, ("identity_id",), 2))
    assert [item.dimensions for item in found.items] == [{"identity_id": "sa-2"}, {"identity_id": "sa-3"}]
    assert found.groups == 3


def test_nothing(read: Read, facts: FactTables) -> None:
    """Without costs, the total is zero, in any currency."""
    write_usage(facts, {(FIRST, "lkc-1", "sa-1"): Decimal(1)})
    nobody = Selection(ALL.window, equal(identity_id="nobody"))
    rates = {FIRST: Decimal("0.9")}
    for selection in (ALL, nobody):
        found: UnitCosts = read(lambda reader, some=selection: unit_costs(reader, WRITTEN, some, (), 5, rates))
        assert [found.total.amount, found.total.usage, found.missing_days] == [0, None, ()]


GIB = Unit("GiB", 2**30)
HALF = Fraction(1, 2)


@given(st.decimals(-(10**12), 10**12, places=12), st.decimals("0.001", 10**18, places=6))
def test_the_nearest_number(amount: Decimal, usage: Decimal) -> None:
    """Usage and unit cost are exact values, rounded once to their places."""
    shown, cost = unit_cost(amount, usage, GIB)
    assert shown is not None
    assert cost is not None
    exact = Fraction(usage) / 2**30
    assert abs(Fraction(shown) - exact) * 10**6 <= HALF
    assert abs(Fraction(cost) - Fraction(amount) / exact) * 10**12 <= HALF


def test_a_cost_with_too_many_digits_is_refused() -> None:
    """A unit cost with too many digits raises an error."""
    with pytest.raises(SumTooLarge):
        unit_cost(Decimal(10**12), Decimal("0.000001"), GIB)


def test_without_usage() -> None:
    """Without usage there is no unit cost; measured zeros are a usage of zero."""
    assert unit_cost(Decimal("1"), None, GIB) == (None, None)
    assert unit_cost(Decimal("1"), Decimal(0), GIB) == (Decimal(0), None)
