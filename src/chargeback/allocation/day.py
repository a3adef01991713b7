"""The calculation of one day: billing lines, usage and members in, chargeback rows out.

A pure function of its evidence and the policies: the same inputs give the same bytes, and for every line the rows
sum to the line. Lines, portions and ways are decided one by one; what there are millions of, the rows, is made as
columns. Proportional policies follow what the other lines were charged, and so come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import INTEGER, chosen, decimals_of, integers_of, reinterpret, repeated, whole
from chargeback.allocation.policies import UNKNOWN, Kind, Policy, PolicyCatalogue, Portion
from chargeback.allocation.shares import shares_of
from chargeback.allocation.split import split_in_order
from chargeback.allocation.ways import OUTCOMES, Pool, Recipients
from chargeback.errors import AllocationError
from chargeback.model import chargeback as words
from chargeback.model.billing import MONEY
from chargeback.model.chargeback import CHARGEBACKS, DIMENSION_CHECK_SQL, DIMENSION_ID_SQL, DIMENSIONS, encoded
from chargeback.model.money import to_units
from chargeback.model.usage import QUANTITY

_LINE_ORDER: Final = ("timestamp", "resource_id", "product_type", "line_id")
_OF_THE_LINE: Final = (
    *("timestamp", "line_id", "ecosystem", "tenant_id"),
    *("resource_id", "environment_id", "product_category", "product_type"),
)
#: What a dimension consists of beside the identity; the detail comes last.
_KIND: Final = tuple(name for name in words.DIMENSION_COLUMNS if name != "identity_id")
_ROWS: Final = encoded(CHARGEBACKS)
# Below so many rows, a second thread costs more than it brings.
_LARGE_DAY: Final = 100_000
# The engine's threads take so many rows of a table at a time.
_PIECE: Final = 65_536
# Sums beyond it fit no column.
_LIMIT: Final = 10**INTEGER.precision
_WIDE: Final = pa.decimal256(76, 0)


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
    """What a day comes to.

    ``rows`` are its chargebacks (schema CHARGEBACKS, in list order), ``dimensions`` all that they have, once each
    (schema DIMENSIONS, and a ``dimension_check``); texts are dictionaries in both. ``unknown_types`` are the product
    types that no policy knows.
    """

    rows: pa.Table
    dimensions: pa.Table
    unknown_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Charge:
    """One portion of one line, and what is to be split of it: ``units`` of 10⁻¹²."""

    line: int
    resource_id: str
    policy: Policy
    number: int
    portion: Portion
    units: int


@dataclass(frozen=True, slots=True)
class _Allotted:
    """A charge, who takes it, and the words that its rows carry. ``position`` is the way's in its chain, from 1."""

    charge: _Charge
    pool: Pool
    kind: Kind
    position: int
    detail: str


class DayCalculator:
    """Calculates days, one after the other. Not to be shared between threads.

    A large day uses so many ``threads``; ``memory_limit``, e.g. ``"1GB"``, bounds the engine that splits by
    weight and hashes dimensions.
    """

    def __init__(self, catalogue: PolicyCatalogue, *, threads: int = 2, memory_limit: str = "1GB") -> None:
        self._catalogue = catalogue
        self._threads = threads
        self._db = duckdb.connect(config={"threads": threads, "memory_limit": memory_limit})

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
        ways = {way for policy in known.values() for portion in policy.portions for way in portion.ways}
        lines = _lines(evidence.billing)
        charges = list(_charges(lines, known))
        day = _Day(evidence, Recipients(evidence.usage, evidence.members, ways), self._db)
        shares = day.allocate([charge for charge in charges if not charge.policy.is_proportional])
        day.recipients.add_charged(day.charged(shares))
        shares = pa.concat_tables(
            [shares, day.allocate([charge for charge in charges if charge.policy.is_proportional])]
        )
        rows, dimensions = self._rows(evidence.day, lines, day, shares)
        unknown = tuple(name for name, policy in policies.items() if policy is None)
        return CalculatedDay(rows, dimensions, unknown)

    def _rows(self, day: date, lines: pa.Table, work: _Day, shares: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The shares in list order with everything that their charges say, and the dimensions among them."""
        shares = shares.take(pc.sort_indices(work.order(lines, shares))).combine_chunks()
        who = shares["who"].combine_chunks()
        described, names = work.described(lines), pa.array(work.recipients.names, pa.string())
        kinds, kind = work.kinds(described, shares)
        dimensions, dimension = self._dimensions(kinds, kind, names, who)
        columns = self._spread(described, shares["allotted"].combine_chunks())
        columns["date"] = pa.repeat(pa.scalar(day, pa.date32()), shares.num_rows)
        columns["amount"] = reinterpret(shares["units"].combine_chunks(), MONEY)
        columns["identity_usage"] = shares["own"]
        columns["dimension_id"] = dimensions["dimension_id"].take(dimension)
        columns["identity_id"] = chosen(names, who)
        columns["allocation_detail"] = chosen(kinds["allocation_detail"].combine_chunks(), kind)
        rows = pa.table({name: columns[name] for name in CHARGEBACKS.names}, schema=_ROWS)
        return rows, dimensions

    def _spread(self, table: pa.Table, rows: pa.Array) -> dict[str, pa.Array]:
        """Each column with the values of ``rows``, texts as dictionaries; on a large day several columns at a time."""
        used = rows.dictionary_encode()
        columns = [column.combine_chunks() for column in table.take(used.dictionary).columns]

        def _chosen(column: pa.Array) -> pa.Array:
            return chosen(column, used.indices) if column.type == pa.string() else column.take(used.indices)

        if len(rows) < _LARGE_DAY:
            return dict(zip(table.column_names, map(_chosen, columns), strict=True))
        with ThreadPoolExecutor(self._threads) as pool:
            return dict(zip(table.column_names, pool.map(_chosen, columns), strict=True))

    def _dimensions(self, kinds: pa.Table, kind: pa.Array, names: pa.Array, who: pa.Array) -> tuple[pa.Table, pa.Array]:
        """Every dimension once, and for each share the position of its own."""
        many = whole(len(names))
        place = pc.add(pc.multiply(kind.cast(pa.int64()), many), who.cast(pa.int64())).dictionary_encode()
        kind = pc.divide(place.dictionary, many)
        columns = {name: chosen(kinds[name].combine_chunks(), kind) for name in _KIND}
        columns["identity_id"] = chosen(names, pc.subtract(place.dictionary, pc.multiply(kind, many)))
        return self._identified(pa.table(columns)), place.indices

    def _identified(self, named: pa.Table) -> pa.Table:
        """Dimensions with their ids, and with what tells two apart that have the same."""
        self._db.register("named", pa.Table.from_batches(named.to_batches(_PIECE), named.schema))
        found = self._db.sql(
            f"SELECT {DIMENSION_ID_SQL} AS dimension_id, {DIMENSION_CHECK_SQL} AS dimension_check FROM named"
        ).to_arrow_table()
        self._db.unregister("named")
        columns = {name: (found if name == "dimension_id" else named)[name] for name in DIMENSIONS.names}
        return pa.table(columns | {"dimension_check": found["dimension_check"]}).combine_chunks()


class _Day:
    """The allocation of one day at work."""

    def __init__(self, evidence: Evidence, recipients: Recipients, db: duckdb.DuckDBPyConnection) -> None:
        self.recipients = recipients
        self._db = db
        self._day = evidence.day
        self._metrics_available = evidence.metrics_available
        self._allotted: list[_Allotted] = []

    def allocate(self, charges: Sequence[_Charge]) -> pa.Table:
        """The shares of ``charges``: ``allotted`` (position in the list of allotted charges), ``who`` (position in the
        recipients' names), ``units`` and ``own``, the measured quantity that it follows."""
        new = [self._allot(charge) for charge in charges]
        numbers = range(len(self._allotted), len(self._allotted) + len(new))
        self._allotted += new
        counts = [len(allotted.pool.who) for allotted in new]
        shares = pa.table(
            {
                "allotted": repeated(numbers, counts),
                "who": pa.chunked_array([allotted.pool.who for allotted in new], pa.int32()),
                "units": pa.chunked_array(
                    shares_of(self._db, [(allotted.charge.units, allotted.pool) for allotted in new]), INTEGER
                ),
                "own": pa.chunked_array([_own(allotted.pool) for allotted in new], QUANTITY),
            }
        )
        return shares.filter(pc.not_equal(shares["units"], pa.scalar(Decimal(0), INTEGER)))

    def _allot(self, charge: _Charge) -> _Allotted:
        """The first way of the charge's chain that finds somebody; the last one always does."""
        find, ways = self.recipients.find, charge.portion.ways
        found = ((position, way, find(way, charge.resource_id)) for position, way in enumerate(ways, start=1))
        position, way, pool = next((n, way, pool) for n, way, pool in found if pool is not None)
        if charge.policy is UNKNOWN:
            detail = words.UNKNOWN_PRODUCT_TYPE
        elif position == 1 or way.kind is Kind.UNALLOCATED:
            detail = OUTCOMES[way.kind][2]
        else:
            available = self._metrics_available
            detail = self.recipients.why_not(ways[0], charge.resource_id, metrics_available=available)
        return _Allotted(charge, pool, way.kind, position, detail)

    def charged(self, shares: pa.Table) -> list[tuple[int, int]]:
        """(position in the recipients' names, units) that everybody is charged by ``shares``.

        Raises:
            AllocationError: a sum does not fit 38 digits.
        """
        wide = pa.table({"who": shares["who"], "units": shares["units"].cast(_WIDE)})
        summed = wide.group_by("who").aggregate([("units", "sum")])
        sums = [int(units) for units in summed["units_sum"].to_pylist()]
        self._refuse(sums)
        return list(zip(summed["who"].to_pylist(), sums, strict=True))

    def _refuse(self, sums: Iterable[int]) -> None:
        if any(abs(each) >= _LIMIT for each in sums):
            raise AllocationError("the amounts of the day exceed 38 digits", day=self._day)

    def order(self, lines: pa.Table, shares: pa.Table) -> pa.ChunkedArray:
        """By what rows are sorted: time, identity, line, portion, all in one number."""
        by_line = sorted(range(len(self._allotted)), key=self._place)
        rank = [0] * len(by_line)
        for position, number in enumerate(by_line):
            rank[number] = position
        instants = pc.rank(lines["timestamp"].combine_chunks(), tiebreaker="dense").to_pylist()
        when = pa.array([instants[allotted.charge.line] for allotted in self._allotted], pa.int64())
        which = shares["allotted"]
        key = pc.multiply(when.take(which), whole(len(self.recipients.names)))
        key = pc.multiply(pc.add(key, shares["who"].cast(pa.int64())), whole(len(rank)))
        return pc.add(key, pa.array(rank, pa.int64()).take(which))

    def _place(self, number: int) -> tuple[int, int]:
        charge = self._allotted[number].charge
        return charge.line, charge.number

    def described(self, lines: pa.Table) -> pa.Table:
        """What all rows of an allotted charge have in common, one row each."""
        every = self._allotted
        of_lines = lines.select(_OF_THE_LINE).take(pa.array([each.charge.line for each in every], pa.int64()))
        hashes = {id(each.charge.policy): each.charge.policy.hash for each in every}
        totals = [None if each.pool.quantities is None else each.pool.total for each in every]
        self._refuse(total for total in totals if total is not None)
        own = {
            "portion": pa.array([each.charge.number for each in every], pa.int16()),
            "cost_type": pa.array([OUTCOMES[each.kind][0] for each in every], pa.string()),
            "allocation_method": pa.array([OUTCOMES[each.kind][1] for each in every], pa.string()),
            "allocation_detail": pa.array([each.detail for each in every], pa.string()),
            "portion_share": pa.array([each.charge.portion.share for each in every], MONEY),
            "chain_position": pa.array([each.position for each in every], pa.int16()),
            "total_usage": _quantities(totals),
            "policy_hash": pa.array([hashes[id(each.charge.policy)] for each in every], pa.string()),
        }
        return pa.table({**{name: of_lines[name] for name in _OF_THE_LINE}, **own}).combine_chunks()

    def kinds(self, described: pa.Table, shares: pa.Table) -> tuple[pa.Table, pa.Array]:
        """What a dimension consists of beside the identity, each combination once, and for each share which it is.

        Usage whose owner is unknown says so, whatever the other rows of its charge say.
        """
        numbers: dict[tuple[str, ...], int] = {}
        of_charges, of_nobody = [], []
        common = described.select(_KIND).to_pylist()
        for each, words_of_charge in zip(self._allotted, common, strict=True):
            kind = tuple(words_of_charge.values())
            of_charges.append(numbers.setdefault(kind, len(numbers)))
            ownerless = (*kind[:-1], words.NO_OWNER_LOCATED) if each.kind is Kind.USAGE else kind
            of_nobody.append(numbers.setdefault(ownerless, len(numbers)))
        which = shares["allotted"]
        is_nobody = pc.equal(shares["who"], pa.scalar(self.recipients.nobody, pa.int32()))
        kind_of_shares = pc.if_else(
            is_nobody, pa.array(of_nobody, pa.int32()).take(which), pa.array(of_charges, pa.int32()).take(which)
        ).combine_chunks()
        columns = zip(*numbers, strict=True) if numbers else [()] * len(_KIND)
        kinds = pa.table({name: pa.array(column, pa.string()) for name, column in zip(_KIND, columns, strict=True)})
        return kinds, kind_of_shares


def _lines(billing: pa.Table) -> pa.Table:
    """The lines that cost something, in list order."""
    costly = billing.filter(pc.not_equal(billing["total_cost"], pa.scalar(Decimal(0), MONEY)))
    return costly.sort_by([(name, "ascending") for name in _LINE_ORDER]).combine_chunks()


def _charges(lines: pa.Table, policies: Mapping[str, Policy]) -> Iterator[_Charge]:
    """Every line split into the portions of its policy."""
    weights = {name: [to_units(portion.share) for portion in policy.portions] for name, policy in policies.items()}
    costs = integers_of(lines["total_cost"].combine_chunks())
    named = zip(lines["resource_id"].to_pylist(), lines["product_type"].to_pylist(), costs, strict=True)
    for line, (resource_id, product_type, units) in enumerate(named):
        policy = policies[product_type]
        parts = split_in_order(units, weights[product_type])
        for number, (portion, part) in enumerate(zip(policy.portions, parts, strict=True), start=1):
            if part:
                yield _Charge(line, resource_id, policy, number, portion, part)


def _own(pool: Pool) -> pa.Array:
    return pa.nulls(len(pool.who), QUANTITY) if pool.quantities is None else pool.quantities


def _quantities(millionths: Sequence[int | None]) -> pa.Array:
    missing = pa.array([value is None for value in millionths], pa.bool_())
    return pc.if_else(missing, pa.scalar(None, QUANTITY), decimals_of([value or 0 for value in millionths], QUANTITY))
