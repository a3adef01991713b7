"""Cycles of names."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chargeback.categories.cycles import cycles

NAMES = st.sampled_from("abcd")


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3)))
def test_cycles_are_found_exactly_where_there_are_any(targets: dict[str, list[str]]) -> None:
    """Every cycle that is found is one; if none is found, the names can be sorted topologically."""
    found = list(cycles(targets))
    for cycle in found:
        assert cycle[0] == cycle[-1]
        assert all(other in targets[one] for one, other in pairwise(cycle))
    left = dict(targets)
    while ready := [name for name, after in left.items() if not set(after) & set(left)]:
        for name in ready:
            del left[name]
    assert bool(found) == bool(left)
