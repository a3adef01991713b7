"""The shares of many portions, as columns.

One query makes all splits by weight of a day. On a small day the query would be most of the work, so its few shares are
calculated with Python's integers, with the same digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import duckdb
import pyarrow as pa

from chargeback.allocation.columns import INTEGER, decimals_of, encode, from_encoded, integers_of, repeat
from chargeback.allocation.split import MAX_PRODUCT, split_evenly, split_in_order, split_sql
from chargeback.allocation.targets import TargetGroup

#: The number of shares by weight from which a query is faster than Python.
MIN_SHARES_FOR_QUERY: Final = 5_000

_SOURCE: Final = """
    (SELECT portion, id, units::HUGEINT AS units, weight::HUGEINT AS weight
     FROM targets JOIN portions USING (portion))
"""


def shares_of(
    db: duckdb.DuckDBPyConnection,
    portions: Sequence[tuple[int, TargetGroup]],
    *,
    min_shares: int = MIN_SHARES_FOR_QUERY,
) -> list[pa.Array]:
    """Return the shares of each portion, given as (units of 10⁻¹², target group), in the order of its group.

    ``db`` is an empty database to calculate in.
    """
    weighted = [n for n, (units, group) in enumerate(portions) if _fits_query(units, group)]
    if sum(len(portions[n][1].identity_index) for n in weighted) < min_shares:
        weighted = []
    by_weight = dict(zip(weighted, _by_weight(db, [portions[n] for n in weighted]), strict=True))
    return [by_weight[n] if n in by_weight else _split_one(units, group) for n, (units, group) in enumerate(portions)]


def _fits_query(units: int, group: TargetGroup) -> bool:
    """Return whether the portion is split by weight and all products of the split fit the query's integers."""
    return group.weights is not None and min(abs(units), group.total) * group.largest < MAX_PRODUCT


def _by_weight(db: duckdb.DuckDBPyConnection, portions: Sequence[tuple[int, TargetGroup]]) -> list[pa.Array]:
    """Return the shares of portions that are split by weight, with one query for all."""
    if not portions:
        return []
    counts = [len(group.identity_index) for _, group in portions]
    targets = pa.table(
        {
            "portion": repeat(range(len(portions)), counts),
            "id": pa.chunked_array([group.identity_index for _, group in portions], pa.int32()),
            "weight": pa.chunked_array([group.weights for _, group in portions], INTEGER),
        }
    )
    units = decimals_of([units for units, _ in portions], INTEGER)
    db.register("targets", targets)
    db.register("portions", pa.table({"portion": pa.array(range(len(portions)), pa.int32()), "units": units}))
    sorted_shares = db.sql(f"SELECT share FROM ({split_sql(_SOURCE)}) ORDER BY portion, id").to_arrow_table()["share"]
    for name in ("targets", "portions"):
        db.unregister(name)
    column = sorted_shares.combine_chunks().cast(INTEGER)
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    return [column.slice(start, count) for start, count in zip(starts, counts, strict=False)]


def _split_one(units: int, group: TargetGroup) -> pa.Array:
    """Return the shares of one portion: an even split is two repeated numbers, any other is calculated in Python."""
    if group.weights is not None:
        return decimals_of(split_in_order(units, integers_of(group.weights)), INTEGER)
    favoured, larger, smaller = split_evenly(units, len(group.identity_index))
    others = len(group.identity_index) - favoured
    return from_encoded([encode(larger) * favoured, encode(smaller) * others], INTEGER)
