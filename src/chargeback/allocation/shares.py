"""What each of the recipients of many charges gets, as columns.

The splits by weight of a day are one query. Of a small day that query would be most of the work: its few shares are
made in Python's integers, with the same digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import duckdb
import pyarrow as pa

from chargeback.allocation.columns import INTEGER, decimals_of, integers_of, repeated, spell, spelt
from chargeback.allocation.split import LARGEST_PRODUCT, split_evenly, split_in_order, split_sql
from chargeback.allocation.ways import Pool

#: From so many shares by weight on, planning a query costs less than it saves.
WORTH_A_QUERY: Final = 5_000

_SOURCE: Final = """
    (SELECT charge, id, units::HUGEINT AS units, weight::HUGEINT AS weight
     FROM recipients JOIN charges USING (charge))
"""


def shares_of(
    db: duckdb.DuckDBPyConnection, charges: Sequence[tuple[int, Pool]], *, worth_a_query: int = WORTH_A_QUERY
) -> list[pa.Array]:
    """For each charge, (units of 10⁻¹², who takes them), the shares of its pool in the pool's order, as integers.

    ``db`` is an empty database to calculate in.
    """
    weighted = [n for n, (units, pool) in enumerate(charges) if pool.weights is not None and not _is_wide(units, pool)]
    if sum(len(charges[n][1].who) for n in weighted) < worth_a_query:
        weighted = []
    by_weight = dict(zip(weighted, _by_weight(db, [charges[n] for n in weighted]), strict=True))
    return [by_weight[n] if n in by_weight else _alone(units, pool) for n, (units, pool) in enumerate(charges)]


def _is_wide(units: int, pool: Pool) -> bool:
    """Whether the products of a split by weight would leave 128 bits."""
    return min(abs(units), pool.total) * pool.largest >= LARGEST_PRODUCT


def _by_weight(db: duckdb.DuckDBPyConnection, charges: Sequence[tuple[int, Pool]]) -> list[pa.Array]:
    """The shares of charges that are split by weight, all in one query."""
    if not charges:
        return []
    counts = [len(pool.who) for _, pool in charges]
    recipients = pa.table(
        {
            "charge": repeated(range(len(charges)), counts),
            "id": pa.chunked_array([pool.who for _, pool in charges], pa.int32()),
            "weight": pa.chunked_array([pool.weights for _, pool in charges], INTEGER),
        }
    )
    units = decimals_of([units for units, _ in charges], INTEGER)
    db.register("recipients", recipients)
    db.register("charges", pa.table({"charge": pa.array(range(len(charges)), pa.int32()), "units": units}))
    sorted_shares = db.sql(f"SELECT share FROM ({split_sql(_SOURCE)}) ORDER BY charge, id").to_arrow_table()["share"]
    for name in ("recipients", "charges"):
        db.unregister(name)
    column = sorted_shares.combine_chunks().cast(INTEGER)
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    return [column.slice(start, count) for start, count in zip(starts, counts, strict=False)]


def _alone(units: int, pool: Pool) -> pa.Array:
    """The shares of one charge: an even split is two numbers, each so many times; any other is done in Python."""
    if pool.weights is not None:
        return decimals_of(split_in_order(units, integers_of(pool.weights)), INTEGER)
    favoured, larger, smaller = split_evenly(units, len(pool.who))
    return spelt([spell(larger) * favoured, spell(smaller) * (len(pool.who) - favoured)], INTEGER)
