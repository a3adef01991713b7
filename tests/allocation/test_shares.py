"""The shares of a pool are those of the exact split."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from chargeback.allocation.columns import INTEGER, decimals_of, integers_of
from chargeback.allocation.shares import shares_of
from chargeback.allocation.split import split_in_order
from chargeback.allocation.ways import Pool

_units = st.integers(-(10**38) + 1, 10**38 - 1)
_weights = st.one_of(
    st.lists(st.integers(1, 10**15), min_size=1, max_size=12),
    st.lists(st.integers(10**20, 10**37), min_size=1, max_size=12),
)


@given(_units, _weights)
def test_by_weight(units: int, weights: list[int]) -> None:
    """Who takes shares by weight gets what the exact split gives, however large the numbers are."""
    who = pa.array(range(len(weights)), pa.int32())
    found = shares_of(units, Pool.weighted(who, decimals_of(weights, INTEGER)))
    assert integers_of(found) == split_in_order(units, weights)


@given(_units, st.integers(1, 40))
def test_evenly(units: int, members: int) -> None:
    """An even split is a split by equal weights."""
    found = shares_of(units, Pool(pa.array(range(members), pa.int32())))
    assert integers_of(found) == split_in_order(units, [1] * members)
