"""The exact split distributes every unit, in Python and in the query engine alike."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.allocation.split import MAX_PRODUCT, split_evenly, split_exactly, split_in_order, split_sql

units = st.integers(-(10**24), 10**24)
weights = st.dictionaries(st.text("abcxyz", min_size=1, max_size=3), st.integers(1, 10**15), min_size=1, max_size=40)


@given(units, weights)
def test_nothing_is_lost(amount: int, shares: dict[str, int]) -> None:
    """The shares sum to the amount, for charges and refunds."""
    assert sum(share for _, share in split_exactly(amount, list(shares.items()))) == amount


@given(units, weights)
def test_nobody_is_off_by_a_unit(amount: int, shares: dict[str, int]) -> None:
    """Every share differs from the exact quotient by less than one unit."""
    total = sum(shares.values())
    for name, share in split_exactly(amount, list(shares.items())):
        assert abs(Fraction(amount * shares[name], total) - share) < 1


@given(units, weights)
def test_a_refund_mirrors_its_charge(amount: int, shares: dict[str, int]) -> None:
    """The split of a negative amount is that of the positive one with the opposite sign."""
    charge = split_exactly(amount, list(shares.items()))
    assert split_exactly(-amount, list(shares.items())) == [(name, -share) for name, share in charge]


@given(units, st.integers(1, 50))
def test_an_even_split_is_a_split_by_equal_weights(amount: int, recipients: int) -> None:
    """In an even split, the first ids get the larger shares."""
    favoured, larger, smaller = split_evenly(amount, recipients)
    evenly = [larger] * favoured + [smaller] * (recipients - favoured)
    assert evenly == split_in_order(amount, [1] * recipients)


@given(units, weights)
def test_ties_go_to_the_first_ids(amount: int, shares: dict[str, int]) -> None:
    """Remaining units go to the largest remainders; ties go to the first ids."""
    total = sum(shares.values())
    floors = {name: divmod(abs(amount) * weight, total) for name, weight in shares.items()}
    left = abs(amount) - sum(floor for floor, _ in floors.values())
    favoured = sorted(shares, key=lambda name: (-floors[name][1], name))[:left]
    sign = -1 if amount < 0 else 1
    expected = {name: sign * (floor + (name in favoured)) for name, (floor, _) in floors.items()}
    assert dict(split_exactly(amount, list(shares.items()))) == expected


@given(st.lists(st.tuples(units, weights), min_size=1, max_size=5))
def test_the_query_engine_gives_the_same_digits(charges: list[tuple[int, dict[str, int]]]) -> None:
    """One query splits many charges exactly as Python integers do."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE source (portion INTEGER, id VARCHAR, units HUGEINT, weight HUGEINT)")
        for number, (amount, shares) in enumerate(charges):
            rows = [(number, name, amount, weight) for name, weight in shares.items()]
            database.executemany("INSERT INTO source VALUES (?, ?, ?, ?)", rows)
        found = database.execute(f"SELECT portion, id, share FROM ({split_sql('source')})").fetchall()
    expected = {
        (number, name): share
        for number, (amount, shares) in enumerate(charges)
        for name, share in split_exactly(amount, list(shares.items()))
    }
    assert {(number, name): share for number, name, share in found} == expected


def test_the_query_engine_at_its_limit() -> None:
    """Just below its limit, the query engine returns the same digits as Python."""
    amount, shares = 10**37, {"a": 3, "b": 4, "c": 2}
    assert min(amount, sum(shares.values())) * max(shares.values()) < MAX_PRODUCT
    with duckdb.connect() as database:
        source = f"(SELECT 1 AS portion, id, {amount}::HUGEINT AS units, weight::HUGEINT AS weight FROM shares)"
        database.execute("CREATE TABLE shares (id VARCHAR, weight INTEGER)")
        database.executemany("INSERT INTO shares VALUES (?, ?)", list(shares.items()))
        found = database.execute(f"SELECT id, share FROM ({split_sql(source)}) ORDER BY id").fetchall()
    assert found == split_exactly(amount, list(shares.items()))


@pytest.mark.parametrize("recipients", [[], [("a", 0)], [("a", 1), ("b", -1)]])
def test_a_split_needs_recipients(recipients: list[tuple[str, int]]) -> None:
    """An empty list of recipients, or a weight that is not positive, is an error."""
    with pytest.raises(ValueError, match="at least one recipient"):
        split_exactly(1, recipients)
