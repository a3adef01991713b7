"""Shares become rows in list order, with the method of their portion and a dimension."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.allocation.columns import INTEGER, decimals_of, integers_of
from chargeback.allocation.methods import MethodKind
from chargeback.allocation.rows import SHARES, RowBuilder, check_digits, shares_of
from chargeback.allocation.split import split_in_order
from chargeback.allocation.targets import (
    AllocatedPortion,
    AllocationTargets,
    TargetGroup,
    billable_lines,
    portion_costs,
)
from chargeback.errors import AllocationError
from chargeback.model.chargeback import CHARGEBACK_ORDER, DIMENSION_COLUMNS, NO_OWNER_LOCATED, dimension_id
from tests.allocation.bills import DAY, POLICIES, bill, members, usage

LINES = billable_lines(bill("r1 WRITE 3 \n r2 BASE 2"))


@pytest.fixture
def builder() -> Iterator[RowBuilder]:
    """A builder of rows with its own database."""
    with duckdb.connect() as database:
        yield RowBuilder(database, threads=2)


def portions_of(targets: AllocationTargets) -> list[AllocatedPortion]:
    """Return the portions of the two lines, the second one first."""
    write, base = portion_costs(LINES, POLICIES)
    group = TargetGroup(pa.array(range(len(targets.identity_ids)), pa.int32()))
    return [
        AllocatedPortion(base, group, MethodKind.EVEN, 1, "EVEN_SPLIT_ALLOCATION"),
        AllocatedPortion(write, group, MethodKind.USAGE, 1, "USAGE_RATIO_ALLOCATION"),
    ]


def shares(*rows: tuple[int, int, int]) -> pa.Table:
    """Return shares from (portion index, identity index, units)."""
    columns = zip(*rows, strict=True)
    portion_index, identity_index, units = (list(column) for column in columns)
    return pa.table(
        {
            "portion_index": portion_index,
            "identity_index": identity_index,
            "units": [Decimal(unit) for unit in units],
            "usage": [None] * len(rows),
        },
        schema=SHARES,
    )


def test_rows_come_in_list_order_with_their_dimensions(builder: RowBuilder) -> None:
    """Rows are in list order and have their dimension ids, whatever the order of shares and portions."""
    targets = AllocationTargets(usage(""), members("r1 active a b"), [])
    given = shares((0, 2, 5), (1, 2, 7), (0, 1, 6), (1, 1, 8))
    rows, dimensions = builder.build(DAY, LINES, portions_of(targets), targets, given)
    found = rows.to_pylist()
    assert found == sorted(found, key=lambda row: [row[name] for name in CHARGEBACK_ORDER])
    assert [(row["identity_id"], row["resource_id"], row["amount"]) for row in found] == [
        ("a", "r1", Decimal("8E-12")),
        ("a", "r2", Decimal("6E-12")),
        ("b", "r1", Decimal("7E-12")),
        ("b", "r2", Decimal("5E-12")),
    ]
    expected = {dimension_id(tuple(row[name] for name in DIMENSION_COLUMNS)) for row in found}
    assert set(dimensions["dimension_id"].to_pylist()) == expected
    assert dimensions.num_rows == len(expected) == 4


def test_usage_without_an_owner_says_so(builder: RowBuilder) -> None:
    """UNALLOCATED's share of measured usage has its own detail; its share of an even split does not."""
    targets = AllocationTargets(usage(""), members(""), [])
    unallocated = targets.unallocated_index
    rows, _ = builder.build(DAY, LINES, portions_of(targets), targets, shares((0, unallocated, 1), (1, unallocated, 1)))
    assert rows["allocation_detail"].to_pylist() == [NO_OWNER_LOCATED, "EVEN_SPLIT_ALLOCATION"]


def test_numbers_of_more_than_38_digits_are_refused() -> None:
    """The largest number of 38 digits fits a column; the next one, of either sign, is an error of the day."""
    check_digits([10**38 - 1, 1 - 10**38], DAY)
    for number in (10**38, -(10**38)):
        with pytest.raises(AllocationError, match="38 digits"):
            check_digits([number], DAY)


_weights = st.one_of(
    st.integers(1, 12).map(lambda count: [1] * count),
    st.lists(st.integers(1, 10**15), min_size=1, max_size=12),
    st.lists(st.integers(10**20, 10**31), min_size=1, max_size=12),
)


@given(st.integers(-(10**37), 10**37), _weights)
def test_shares_are_those_of_the_split(units: int, weights: list[int]) -> None:
    """Even, weighted and wide portions get the digits of the exact split."""
    index = pa.array(range(len(weights)), pa.int32())
    even, weighted = TargetGroup(index), TargetGroup.weighted(index, decimals_of(weights, INTEGER))
    assert integers_of(shares_of(units, even)) == split_in_order(units, [1] * len(weights))
    assert integers_of(shares_of(units, weighted)) == split_in_order(units, weights)
