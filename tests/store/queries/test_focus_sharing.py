"""Shares of prices and quantities are exact, compared with integers in Python."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.reports.focus.file import decimal_of, divisor, positions, shared
from chargeback.store.queries.engine import Cursor
from tests.support.laws import examples
from tests.support.readers import Ask

amounts = st.lists(st.integers(1, 10**20), min_size=1, max_size=6)
wholes = st.integers(-(10**26), 10**26)


def sql_shares(ask: Ask, units: list[int], wholes: list[int]) -> list[tuple[int, ...]]:
    """Return the database's shares, in order."""
    table = pa.table(
        {
            "line_id": ["l"] * len(units),
            "name": list(range(len(units))),
            "amount": pa.array(units, pa.decimal128(38, 0)),
            **{f"whole_{n}": pa.array([whole] * len(units), pa.decimal128(38, 0)) for n, whole in enumerate(wholes)},
        }
    )
    names = [f"whole_{n}::HUGEINT" for n in range(len(wholes))]

    def _ask(cursor: Cursor) -> list[tuple[int, ...]]:
        cursor.register("amounts", table)
        rows = positions("(SELECT *, amount::HUGEINT AS units FROM amounts)", ["name"])
        fields = ", ".join(shared(name, divisor(*names)) for name in names)
        return cursor.rows(f"SELECT {fields} FROM ({rows}) ORDER BY place")

    found: list[tuple[int, ...]] = ask(_ask)
    return found


@settings(max_examples=examples(60))
@given(units=amounts, whole=wholes, sign=st.sampled_from([1, -1]))
def test_shares_sum_to_the_whole(ask: Ask, units: list[int], whole: int, sign: int) -> None:
    """The shares have the sign of the whole and sum to it, and each is close to the exact one."""
    found = [share for (share,) in sql_shares(ask, [sign * each for each in units], [whole])]
    assert sum(found) == whole
    total = sum(units)
    # The running sums are shortened to the number of digits that fits with the whole.
    lost = max(0, len(str(total)) + len(str(abs(whole))) - 37)
    for share, each in zip(found, units, strict=True):
        assert share * whole >= 0
        assert abs(share - Fraction(whole * each, total)) <= 2 + abs(whole) * Fraction(2 * 10**lost, total)


@settings(max_examples=examples(40))
@given(units=amounts, whole=st.integers(-(10**14), 10**14))
def test_small_wholes_are_rounded_down_at_running_sums(ask: Ask, units: list[int], whole: int) -> None:
    """If all digits fit, a share is the difference of two rounded running sums."""
    total, upto, expected = sum(units), 0, []
    for each in units:
        before, upto = upto, upto + each
        size = abs(whole) * upto // total - abs(whole) * before // total
        expected.append((size if whole > 0 else -size,))
    assert sql_shares(ask, units, [whole]) == expected


def test_a_line_without_cost_has_its_quantity_once(ask: Ask) -> None:
    """If a line costs nothing, its first row has the whole quantity."""
    assert sql_shares(ask, [0, 0], [7]) == [(7,), (0,)]


def test_two_wholes_are_shared_in_the_same_proportions(ask: Ask) -> None:
    """A price and a quantity of very different sizes keep their ratio in every row."""
    found = sql_shares(ask, [1, 10**19], [10**26, 10**13])
    assert [sum(column) for column in zip(*found, strict=True)] == [10**26, 10**13]
    assert all(abs(price - quantity * 10**13) <= 10**13 for price, quantity in found)


def test_decimals(ask: Ask) -> None:
    """A whole number of decimal places becomes a decimal."""
    sql = decimal_of("(-15)::HUGEINT", 18)
    assert [str(value) for value in ask(lambda cursor: cursor.rows(f"SELECT {sql}"))[0]] == ["-1.5E-17"]
