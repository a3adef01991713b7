"""The ways of the policies: who could take a share by each, which way of a chain applies, and why the first did not.

Recipients are kept as columns, way by way and scope by scope (a resource, or ``*`` for the whole tenant), in ascending
order of their ids. A *pool* is one stretch of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import INTEGER, decimals_of, reinterpret, whole
from chargeback.allocation.policies import Kind, Way
from chargeback.model import chargeback as words
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.usage import ACTIVE, EVERYTHING, OWNER, OWNERS, PERIOD, QUANTITY

#: The relation that members are kept under, by way.
_RELATIONS: Final = {
    Way(Kind.EVEN, ("active",)): ACTIVE,
    Way(Kind.EVEN, ("period",)): PERIOD,
    Way(Kind.EVEN, ("owners",)): OWNERS,
    Way(Kind.OWNER): OWNER,
}
# Wide enough for the sum of many integers of 38 digits.
_WIDE: Final = pa.decimal256(76, 0)
_TENANT_WIDE: Final = {Way(Kind.EVEN, ("period",)), Way(Kind.PROPORTIONAL), Way(Kind.UNALLOCATED)}

#: Per kind of way: the row's cost type, its method, and its detail when the first way applied.
OUTCOMES: Final = {
    Kind.USAGE: (words.USAGE_COST, words.USAGE_RATIO, words.USAGE_RATIO_ALLOCATION),
    Kind.OWNER: (words.USAGE_COST, words.DIRECT, words.OWNER_ALLOCATION),
    Kind.EVEN: (words.SHARED_COST, words.EVEN_SPLIT, words.EVEN_SPLIT_ALLOCATION),
    Kind.PROPORTIONAL: (words.SHARED_COST, words.PROPORTIONAL, words.PROPORTIONAL_ALLOCATION),
    Kind.UNALLOCATED: (words.SHARED_COST, words.TERMINAL, words.NO_IDENTITIES_LOCATED),
}


@dataclass(frozen=True, slots=True)
class Pool:
    """Who could take a share by one way in one scope.

    ``who`` are positions in :attr:`Recipients.names`, ascending. ``weights`` (INTEGER) are positive, one each; none
    for an even split. ``total`` and ``largest`` are of the weights. ``quantities`` (QUANTITY) are what the weights
    measure; none where nothing is measured.
    """

    who: pa.Array
    weights: pa.Array | None = None
    total: int = 0
    largest: int = 0
    quantities: pa.Array | None = None

    @classmethod
    def weighted(cls, who: pa.Array, weights: pa.Array, quantities: pa.Array | None = None) -> Pool:
        """A pool whose members take shares by weight."""
        total = int(pc.sum(weights.cast(_WIDE)).as_py())
        return cls(who, weights, total, int(pc.max(weights).as_py()), quantities)


class Recipients:
    """Everybody who could take a share of a day's lines by one of ``ways``.

    ``usage`` and ``members`` have the schemas of :mod:`chargeback.model`, their rows in any order.
    """

    def __init__(self, usage: pa.Table, members: pa.Table, ways: Collection[Way]) -> None:
        usage, members = usage.combine_chunks(), members.combine_chunks()
        everybody = {*usage["subject"].unique().to_pylist(), *members["identity_id"].unique().to_pylist()}
        #: All ids that appear, ascending.
        self.names: list[str] = sorted({*everybody, UNALLOCATED})
        scopes = {*usage["resource_id"].unique().to_pylist(), *members["resource_id"].unique().to_pylist()}
        self._scopes: list[str] = sorted(scopes)
        self._pools: dict[tuple[Way, str], Pool] = {}
        self._measured: dict[Way, frozenset[str]] = {}
        nobody = self.names.index(UNALLOCATED)
        self._pools[Way(Kind.UNALLOCATED), EVERYTHING] = Pool(pa.array([nobody], pa.int32()))
        #: The position of UNALLOCATED.
        self.nobody = nobody
        used = self._places(usage, "subject").append_column("value", usage["value"])
        somebody = members.filter(pc.not_equal(members["identity_id"], pa.scalar(UNALLOCATED, pa.string())))
        belonging, relations = self._places(somebody, "identity_id"), somebody["relation"]
        for way in ways:
            if way.kind is Kind.USAGE:
                self._add_measured(way, used.filter(_among(usage["measure"], way.arguments)))
            elif relation := _RELATIONS.get(way):
                self._add_members(way, belonging.filter(pc.equal(relations, pa.scalar(relation, pa.string()))))

    def find(self, way: Way, resource_id: str) -> Pool | None:
        """Who could take a share of a line of ``resource_id`` by ``way``; none where there is nobody."""
        return self._pools.get((way, EVERYTHING if way in _TENANT_WIDE else resource_id))

    def add_charged(self, charged: Iterable[tuple[int, int]]) -> None:
        """Let the proportional way follow ``(position in names, units)``: what each identity was charged by the lines
        that are not proportional. Who was credited takes no part, nor does UNALLOCATED."""
        taking_part = sorted((who, units) for who, units in charged if units > 0 and who != self.nobody)
        if taking_part:
            who, weights = zip(*taking_part, strict=True)
            pool = Pool.weighted(pa.array(who, pa.int32()), decimals_of(weights, INTEGER))
            self._pools[Way(Kind.PROPORTIONAL), EVERYTHING] = pool

    def why_not(self, way: Way, resource_id: str, *, metrics_available: bool) -> str:
        """Why ``way``, the first of a chain, finds nobody for a line of ``resource_id``."""
        if way.kind is Kind.USAGE:
            if not metrics_available:
                return words.METRICS_UNAVAILABLE
            measured = resource_id in self._measured[way]
            return words.NO_USAGE_FOR_ACTIVE_IDENTITIES if measured else words.NO_METRICS_LOCATED
        if _RELATIONS.get(way) in {OWNER, OWNERS}:
            return words.NO_OWNER_LOCATED
        if _RELATIONS.get(way) == PERIOD:
            return words.NO_IDENTITIES_LOCATED
        return words.NO_ACTIVE_IDENTITIES_LOCATED

    def _places(self, table: pa.Table, whose: str) -> pa.Table:
        """``place`` per row: the scope's position times the number of names, plus the name's position."""
        scope = pc.index_in(table["resource_id"], value_set=pa.array(self._scopes, pa.string())).cast(pa.int64())
        who = pc.index_in(table[whose], value_set=pa.array(self.names, pa.string())).cast(pa.int64())
        return pa.table({"place": pc.add(pc.multiply(scope, whole(len(self.names))), who)})

    def _add_measured(self, way: Way, rows: pa.Table) -> None:
        summed = rows.group_by("place").aggregate([("value", "sum")]).sort_by("place").combine_chunks()
        scopes = pc.divide(summed["place"], whole(len(self.names))).unique().to_pylist()
        self._measured[way] = frozenset(self._scopes[scope] for scope in scopes)
        above_zero = summed.filter(pc.greater(summed["value_sum"], pa.scalar(Decimal(0), QUANTITY))).combine_chunks()
        quantities = above_zero["value_sum"].cast(QUANTITY).combine_chunks()
        weights = reinterpret(quantities, INTEGER)
        for scope, start, count, who in self._stretches(above_zero["place"]):
            own = weights.slice(start, count), quantities.slice(start, count)
            self._pools[way, scope] = Pool.weighted(who, *own)

    def _add_members(self, way: Way, rows: pa.Table) -> None:
        distinct = rows.group_by("place").aggregate([]).sort_by("place")
        for scope, _, _, who in self._stretches(distinct["place"]):
            self._pools[way, scope] = Pool(who)

    def _stretches(self, places: pa.ChunkedArray) -> Iterable[tuple[str, int, int, pa.Array]]:
        """(scope, first row, number of rows, positions in names) of each stretch of sorted places of one scope."""
        many = whole(len(self.names))
        scopes = pc.divide(places, many)
        who = pc.subtract(places, pc.multiply(scopes, many)).cast(pa.int32()).combine_chunks()
        runs = scopes.value_counts()
        start = 0
        for scope, count in zip(runs.field("values").to_pylist(), runs.field("counts").to_pylist(), strict=True):
            yield self._scopes[scope], start, count, who.slice(start, count)
            start += count


def _among(column: pa.ChunkedArray, values: Sequence[str]) -> Any:
    return pc.is_in(column, value_set=pa.array(values, pa.string()))
