"""The shares of many portions at once are those of each portion alone."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.allocation.columns import INTEGER, decimals_of, integers_of
from chargeback.allocation.rows import shares_of
from chargeback.allocation.split import split_in_order
from chargeback.allocation.targets import TargetGroup

_weights = st.one_of(
    st.integers(1, 12).map(lambda count: [1] * count),
    st.lists(st.integers(1, 10**15), min_size=1, max_size=12),
    st.lists(st.integers(10**20, 10**31), min_size=1, max_size=12),
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-(10**37), 10**37), _weights, st.booleans()), max_size=6))
def test_together_as_alone(portions: list[tuple[int, list[int], bool]]) -> None:
    """Even, weighted and wide portions, in any mixture, few or many, get the digits that Python's integers give."""
    given_ = []
    for units, weights, is_even in portions:
        index = pa.array(range(len(weights)), pa.int32())
        even, weighted = TargetGroup(index), TargetGroup.weighted(index, decimals_of(weights, INTEGER))
        given_.append((units, even if is_even else weighted))
    with duckdb.connect() as database:
        found = [
            [integers_of(shares) for shares in shares_of(database, given_, min_shares=worth)] for worth in (0, 10**9)
        ]
    expected = [split_in_order(units, [1] * len(w) if is_even else w) for units, w, is_even in portions]
    assert found == [expected, expected]
