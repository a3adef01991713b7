"""The rows as columns: the shares of a day in list order, with the columns of their portions, and their dimensions.

A day can have millions of rows but has few portions. Values that all rows of a portion share are made once per portion
and repeated by position; texts remain dictionary-encoded until they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Final, NewType

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import (
    INTEGER,
    decimals_of,
    encode,
    from_encoded,
    int64,
    reinterpret,
    take_dictionary,
)
from chargeback.allocation.methods import OUTCOMES, MethodKind
from chargeback.allocation.split import split_column, split_evenly
from chargeback.allocation.targets import AllocatedPortion, AllocationTargets, TargetGroup
from chargeback.errors import AllocationError
from chargeback.model import chargeback as chargeback_model
from chargeback.model.billing import MONEY
from chargeback.model.chargeback import CHARGEBACKS, DIMENSION_CHECK_SQL, DIMENSION_ID_SQL, DIMENSIONS, encoded
from chargeback.model.usage import QUANTITY

#: The position of an allocated portion among those of the day.
PortionIndex = NewType("PortionIndex", int)

#: One row is one identity's share of one portion: a :data:`PortionIndex`, an
#: :data:`~chargeback.allocation.targets.IdentityIndex`, units of 10⁻¹², and the identity's measured usage.
SHARES: Final = pa.schema(
    [
        pa.field("portion_index", pa.int32()),
        pa.field("identity_index", pa.int32()),
        pa.field("units", INTEGER),
        pa.field("usage", QUANTITY),
    ]
)

_LINE_COLUMNS: Final = (
    *("timestamp", "line_id", "ecosystem", "tenant_id"),
    *("resource_id", "environment_id", "product_category", "product_type"),
)
# A dimension without its identity. The allocation detail comes last.
_DIMENSION_PARTS: Final = tuple(name for name in chargeback_model.DIMENSION_COLUMNS if name != "identity_id")
_ROWS: Final = encoded(CHARGEBACKS)
# With fewer rows, a second thread costs more than it saves.
_LARGE_DAY: Final = 100_000
# The number of rows that a thread of the engine processes at a time.
_PIECE: Final = 65_536
#: The smallest positive integer that does not fit a column.
FIRST_OVERFLOW: Final = 10**INTEGER.precision


def shares_of(units: int, group: TargetGroup) -> pa.Array:
    """Return the shares of one portion, in the order of its group. An even split is two repeated numbers."""
    if group.weights is not None:
        return split_column(units, group.weights, group.total)
    favoured, larger, smaller = split_evenly(units, len(group.identity_index))
    others = len(group.identity_index) - favoured
    return from_encoded([encode(larger) * favoured, encode(smaller) * others], INTEGER)


class RowBuilder:
    """Turns shares into chargeback rows, with ``threads`` threads on a large day; ``db`` hashes the dimensions."""

    def __init__(self, db: duckdb.DuckDBPyConnection, threads: int) -> None:
        self._db = db
        self._threads = threads

    def build(
        self,
        day: date,
        lines: pa.Table,
        portions: Sequence[AllocatedPortion],
        targets: AllocationTargets,
        shares: pa.Table,
    ) -> tuple[pa.Table, pa.Table]:
        """Return the rows (schema CHARGEBACKS, in list order) and each of their dimensions once.

        The dimensions have the schema DIMENSIONS and a ``dimension_check``. ``shares`` has the schema :data:`SHARES`.

        Raises:
            AllocationError: a total usage does not fit 38 digits.
        """
        identities = len(targets.identity_ids)
        shares = shares.take(pc.sort_indices(_sort_key(lines, portions, identities, shares))).combine_chunks()
        identity_index = shares["identity_index"].combine_chunks()
        described, identity_ids = _describe(day, lines, portions), pa.array(targets.identity_ids, pa.string())
        parts, part_index = _dimension_parts(described, portions, targets, shares)
        with ThreadPoolExecutor(1) as beside:
            args = parts, part_index, identity_ids, identity_index
            is_beside = self._threads > 1 and shares.num_rows >= _LARGE_DAY
            hashing = beside.submit(self._dimensions, *args) if is_beside else None
            columns = _spread(described, shares["portion_index"].combine_chunks())
            columns["date"] = pa.repeat(pa.scalar(day, pa.date32()), shares.num_rows)
            columns["amount"] = reinterpret(shares["units"].combine_chunks(), MONEY)
            columns["identity_usage"] = shares["usage"]
            columns["identity_id"] = take_dictionary(identity_ids, identity_index.dictionary_encode())
            details = parts["allocation_detail"].combine_chunks()
            columns["allocation_detail"] = take_dictionary(details, part_index.dictionary_encode())
            dimensions, dimension_index = hashing.result() if hashing else self._dimensions(*args)
        columns["dimension_id"] = dimensions["dimension_id"].take(dimension_index)
        rows = pa.table({name: columns[name] for name in CHARGEBACKS.names}, schema=_ROWS)
        return rows, dimensions

    def _dimensions(
        self, parts: pa.Table, part_index: pa.Array, identity_ids: pa.Array, identity_index: pa.Array
    ) -> tuple[pa.Table, pa.Array]:
        """Return every dimension once and, for each share, the position of its dimension."""
        identities = int64(len(identity_ids))
        pairs = pc.add(pc.multiply(part_index.cast(pa.int64()), identities), identity_index.cast(pa.int64()))
        pairs = pairs.dictionary_encode()
        part_index = pc.divide(pairs.dictionary, identities)
        identity_index = pc.subtract(pairs.dictionary, pc.multiply(part_index, identities))
        used = part_index.dictionary_encode()
        columns = {name: take_dictionary(parts[name].combine_chunks(), used) for name in _DIMENSION_PARTS}
        columns["identity_id"] = take_dictionary(identity_ids, identity_index.dictionary_encode())
        return self._with_ids(pa.table(columns)), pairs.indices

    def _with_ids(self, named: pa.Table) -> pa.Table:
        """Add to dimensions their ids, and the check that distinguishes two dimensions with the same id."""
        self._db.register("named", pa.Table.from_batches(named.to_batches(_PIECE), named.schema))
        found = self._db.sql(
            f"SELECT {DIMENSION_ID_SQL} AS dimension_id, {DIMENSION_CHECK_SQL} AS dimension_check FROM named"
        ).to_arrow_table()
        self._db.unregister("named")
        columns = {name: (found if name == "dimension_id" else named)[name] for name in DIMENSIONS.names}
        return pa.table(columns | {"dimension_check": found["dimension_check"]}).combine_chunks()


def check_digits(integers: Iterable[int], day: date) -> None:
    """Refuse integers that do not fit a column.

    Raises:
        AllocationError: an integer has more than 38 digits.
    """
    if any(abs(integer) >= FIRST_OVERFLOW for integer in integers):
        raise AllocationError("the amounts of the day exceed 38 digits", day=day)


def _sort_key(
    lines: pa.Table, portions: Sequence[AllocatedPortion], identities: int, shares: pa.Table
) -> pa.ChunkedArray:
    """Return one number per share that sorts by time, identity, line and portion."""
    in_order = sorted(range(len(portions)), key=lambda n: (portions[n].cost.line_index, portions[n].cost.number))
    rank = [0] * len(in_order)
    for position, portion_index in enumerate(in_order):
        rank[portion_index] = position
    instants = pc.rank(lines["timestamp"].combine_chunks(), tiebreaker="dense").to_pylist()
    instant = pa.array([instants[portion.cost.line_index] for portion in portions], pa.int64())
    portion_index = shares["portion_index"]
    key = pc.multiply(instant.take(portion_index), int64(identities))
    key = pc.multiply(pc.add(key, shares["identity_index"].cast(pa.int64())), int64(len(rank)))
    return pc.add(key, pa.array(rank, pa.int64()).take(portion_index))


def _spread(described: pa.Table, portion_index: pa.Array) -> dict[str, pa.Array]:
    """Return each column of ``described`` with one value per share; texts are dictionary-encoded."""
    used = portion_index.dictionary_encode()

    def _take(column: pa.Array) -> pa.Array:
        is_text = column.type == pa.string()
        return take_dictionary(column, used) if is_text else column.take(portion_index)

    columns = [column.combine_chunks() for column in described.columns]
    return dict(zip(described.column_names, map(_take, columns), strict=True))


def _describe(day: date, lines: pa.Table, portions: Sequence[AllocatedPortion]) -> pa.Table:
    """Return one row per portion: the columns that all rows of a portion have in common."""
    line_index = pa.array([portion.cost.line_index for portion in portions], pa.int64())
    of_lines = lines.select(_LINE_COLUMNS).take(line_index)
    outcomes = [OUTCOMES[portion.method] for portion in portions]
    policies = {id(portion.cost.policy): portion.cost.policy for portion in portions}
    hashes = {key: policy.hash for key, policy in policies.items()}
    totals = [None if portion.group.usage is None else portion.group.total for portion in portions]
    check_digits((total for total in totals if total is not None), day)
    of_portions = {
        "portion": pa.array([portion.cost.number for portion in portions], pa.int16()),
        "cost_type": pa.array([outcome.cost_type for outcome in outcomes], pa.string()),
        "allocation_method": pa.array([outcome.allocation_method for outcome in outcomes], pa.string()),
        "allocation_detail": pa.array([portion.detail for portion in portions], pa.string()),
        "portion_share": pa.array([portion.cost.portion.share for portion in portions], MONEY),
        "chain_position": pa.array([portion.chain_position for portion in portions], pa.int16()),
        "total_usage": _quantities(totals),
        "policy_hash": pa.array([hashes[id(portion.cost.policy)] for portion in portions], pa.string()),
    }
    return pa.table({**{name: of_lines[name] for name in _LINE_COLUMNS}, **of_portions}).combine_chunks()


def _dimension_parts(
    described: pa.Table, portions: Sequence[AllocatedPortion], targets: AllocationTargets, shares: pa.Table
) -> tuple[pa.Table, pa.Array]:
    """Return each combination of dimension columns without the identity once and, for each share, its position.

    A share of usage whose owner is unknown has the detail NO_OWNER_LOCATED, regardless of its portion's other rows.
    """
    positions: dict[tuple[str, ...], int] = {}
    of_portions, of_unallocated = [], []
    for portion, values in zip(portions, described.select(_DIMENSION_PARTS).to_pylist(), strict=True):
        part = tuple(values.values())
        of_portions.append(positions.setdefault(part, len(positions)))
        is_usage = portion.method is MethodKind.USAGE
        without_owner = (*part[:-1], chargeback_model.NO_OWNER_LOCATED) if is_usage else part
        of_unallocated.append(positions.setdefault(without_owner, len(positions)))
    portion_index = shares["portion_index"]
    is_unallocated = pc.equal(shares["identity_index"], pa.scalar(targets.unallocated_index, pa.int32()))
    part_index = pc.if_else(
        is_unallocated,
        pa.array(of_unallocated, pa.int32()).take(portion_index),
        pa.array(of_portions, pa.int32()).take(portion_index),
    ).combine_chunks()
    columns = zip(*positions, strict=True) if positions else [()] * len(_DIMENSION_PARTS)
    named = zip(_DIMENSION_PARTS, columns, strict=True)
    return pa.table({name: pa.array(column, pa.string()) for name, column in named}), part_index


def _quantities(millionths: Sequence[int | None]) -> pa.Array:
    missing = pa.array([value is None for value in millionths], pa.bool_())
    return pc.if_else(missing, pa.scalar(None, QUANTITY), decimals_of([value or 0 for value in millionths], QUANTITY))
