"""The calculation of one day: billing lines, usage and members in, chargeback rows out.

A pure function of its evidence and the policies: the same inputs give the same bytes, and for every line the rows
sum to the line. It runs in two passes, because proportional policies follow what the other lines were charged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa

from chargeback.allocation import ways
from chargeback.allocation.policies import UNKNOWN, Policy, PolicyCatalogue
from chargeback.allocation.split import LARGEST_PRODUCT, split_exactly, split_sql
from chargeback.errors import AllocationError
from chargeback.model.billing import MONEY
from chargeback.model.chargeback import CHARGEBACKS

# Below so many rows of evidence, a second thread costs more than it brings.
_LARGE_DAY = 20_000
_INTEGER = pa.decimal128(38, 0)


@dataclass(frozen=True)
class Evidence:
    """What a day is calculated from.

    ``billing``, ``usage`` and ``members`` have the schemas of :mod:`chargeback.model`; ``metrics_available`` is false
    when the metrics source did not answer for so long that the day goes on without it.
    """

    day: date
    billing: pa.Table
    usage: pa.Table
    members: pa.Table
    metrics_available: bool = True


@dataclass(frozen=True)
class CalculatedDay:
    """The chargeback rows of a day (schema CHARGEBACKS, in list order), and the product types nobody knew."""

    rows: pa.Table
    unknown_types: tuple[str, ...]


class DayCalculator:
    """Calculates days, one after the other. Not to be shared between threads.

    ``threads`` and ``memory_limit`` bound the query engine, e.g. ``"1GB"``.
    """

    def __init__(self, catalogue: PolicyCatalogue, *, threads: int = 2, memory_limit: str = "1GB") -> None:
        self._catalogue = catalogue
        self._threads = threads
        self._db = duckdb.connect(config={"threads": 1, "memory_limit": memory_limit})

    def close(self) -> None:
        """Give the engine's memory back."""
        self._db.close()

    def calculate(self, evidence: Evidence) -> CalculatedDay:
        """The day's rows.

        Raises:
            AllocationError: the amounts of the day do not fit 38 digits.
        """
        types = sorted(set(evidence.billing["product_type"].to_pylist()))
        policies = {name: self._catalogue.find(name) for name in types}
        known = {name: policy or UNKNOWN for name, policy in policies.items()}
        is_large = evidence.usage.num_rows + evidence.members.num_rows > _LARGE_DAY
        self._db.execute(f"SET threads TO {self._threads if is_large else 1}")
        try:
            self._prepare(evidence, known)
            self._allocate(name for name, policy in known.items() if not policy.is_proportional)
            self._db.execute(ways.PROPORTIONAL_CANDIDATES)
            self._allocate(name for name, policy in known.items() if policy.is_proportional)
            rows = self._rows(evidence.day)
        except duckdb.OutOfRangeException as error:
            raise AllocationError(f"the amounts of the day exceed 38 digits: {error}", day=evidence.day) from error
        unknown = tuple(name for name, policy in policies.items() if policy is None)
        return CalculatedDay(rows, unknown)

    def _prepare(self, evidence: Evidence, policies: dict[str, Policy]) -> None:
        """Load the day, and who could take a share by each way that its policies name."""
        billing, usage = evidence.billing, evidence.usage
        self._load("billing_in", billing.append_column("units", _as_integers(billing["total_cost"])))
        self._load("usage_in", usage.append_column("micro", _as_integers(usage["value"])))
        self._load("members_in", evidence.members)
        chain = ways.spell_out(policies)
        self._load("portions", chain.portions)
        self._load("chain", chain.ways)
        self._load("measures", chain.measures)
        self._db.execute(ways.LINES)
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE parts AS {split_sql(ways.PORTIONS_TO_SPLIT)}")
        self._db.execute(ways.CANDIDATES)
        self._db.execute(ways.REASONS, {"metrics_available": evidence.metrics_available})
        self._db.execute(ways.NO_SHARES)

    def _load(self, name: str, table: pa.Table) -> None:
        self._db.register("incoming", table)
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM incoming")
        self._db.unregister("incoming")

    def _allocate(self, product_types: Iterable[str]) -> None:
        """Split every line of the given types among those whom the first applicable way finds."""
        self._db.execute(ways.CHOSEN, {"types": list(product_types), "largest": LARGEST_PRODUCT * 0.9})
        self._db.execute(ways.KEEP_CHOSEN)
        self._db.execute(ways.EVEN_SHARES)
        self._db.execute(f"{ways.INTO_SHARES} ({split_sql(ways.WEIGHTED_TO_SPLIT)})")
        self._split_in_python()

    def _split_in_python(self) -> None:
        """The same split for charges whose products would leave 128 bits."""
        weighted: dict[int, tuple[int, list[tuple[str, int, Any]]]] = {}
        for charge, units, name, weight, quantity in self._db.execute(ways.WIDE_TO_SPLIT).fetchall():
            weighted.setdefault(charge, (int(units), []))[1].append((name, int(weight), quantity))
        records = [
            {"charge": charge, "id": name, "quantity": quantity, "share": share}
            for charge, (units, recipients) in weighted.items()
            for (name, share), (_, _, quantity) in zip(
                split_exactly(units, [(name, weight) for name, weight, _ in recipients]), recipients, strict=True
            )
        ]
        if records:
            schema = pa.schema(
                [("charge", pa.int64()), ("id", pa.string()), ("quantity", pa.decimal128(38, 6)), ("share", _INTEGER)]
            )
            self._load("wide_shares", pa.Table.from_pylist(records, schema=schema))
            self._db.execute(f"{ways.INTO_SHARES} wide_shares")

    def _rows(self, day: date) -> pa.Table:
        self._db.execute(ways.EXPLAINED)
        rows = self._db.sql(ways.ROWS, params={"day": day}).to_arrow_table()
        amounts = _reinterpret(rows["units"], MONEY)
        columns = {field.name: amounts if field.name == "amount" else rows[field.name] for field in CHARGEBACKS}
        return pa.table(columns).cast(CHARGEBACKS)


def _as_integers(amounts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as integers of their last place."""
    return _reinterpret(amounts, _INTEGER)


def _reinterpret(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The same 128-bit integers under another scale: exact, and without touching a digit."""
    chunks = [pa.Array.from_buffers(kind, len(chunk), chunk.buffers(), offset=chunk.offset) for chunk in values.chunks]
    return pa.chunked_array(chunks, kind)
