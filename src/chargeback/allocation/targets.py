"""Portions and their targets: how the lines of a day are divided, who can share each part, and by which method.

A *portion* is the part of a line that one entry of its policy splits. Identities are kept as columns of positions in
one sorted list of ids. A *target group* is the slice of such a column for one method and one resource (or ``*``, the
whole tenant), in ascending order of the ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NewType

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import INTEGER, WIDE_INTEGER, int64, integers_of, reinterpret
from chargeback.allocation.methods import (
    OUTCOMES,
    PROPORTIONAL,
    RELATIONS,
    TENANT_WIDE,
    UNALLOCATED,
    AllocationMethod,
    MethodKind,
)
from chargeback.allocation.policies import UNKNOWN, Policy, Portion
from chargeback.allocation.split import split_in_order
from chargeback.model import chargeback as chargeback_model
from chargeback.model import inventory
from chargeback.model.billing import MONEY
from chargeback.model.money import to_units
from chargeback.model.usage import EVERYTHING, OWNER, OWNERS, PERIOD, QUANTITY

_LINE_ORDER: Final = ("timestamp", "resource_id", "product_type", "line_id")

#: The position of a billing line in the table that :func:`billable_lines` returns.
LineIndex = NewType("LineIndex", int)

#: The position of an identity in :attr:`AllocationTargets.identity_ids`.
IdentityIndex = NewType("IdentityIndex", int)


@dataclass(frozen=True, slots=True)
class PortionCost:
    """One portion of one line: ``number`` counts the portions of the line from 1, ``units`` are 10⁻¹² of the cost."""

    line_index: LineIndex
    resource_id: str
    policy: Policy
    number: int
    portion: Portion
    units: int


def billable_lines(billing: pa.Table) -> pa.Table:
    """Return the lines that cost something, in list order."""
    costly = billing.filter(pc.not_equal(billing["total_cost"], pa.scalar(Decimal(0), MONEY)))
    return costly.sort_by([(name, "ascending") for name in _LINE_ORDER]).combine_chunks()


def portion_costs(lines: pa.Table, policies: Mapping[str, Policy]) -> Iterator[PortionCost]:
    """Split every line exactly into the portions of its policy; portions of zero are left out.

    ``policies`` maps each product type of ``lines`` to its policy.
    """
    weights = {name: [to_units(portion.share) for portion in policy.portions] for name, policy in policies.items()}
    costs = integers_of(lines["total_cost"].combine_chunks())
    fields = zip(lines["resource_id"].to_pylist(), lines["product_type"].to_pylist(), costs, strict=True)
    for line_index, (resource_id, product_type, units) in enumerate(fields):
        policy = policies[product_type]
        parts = split_in_order(units, weights[product_type])
        for number, (portion, part) in enumerate(zip(policy.portions, parts, strict=True), start=1):
            if part:
                yield PortionCost(LineIndex(line_index), resource_id, policy, number, portion, part)


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """The identities that share a portion by one method on one resource.

    ``identity_index`` (int32) holds ascending :data:`IdentityIndex` values. ``weights`` (INTEGER) are positive, one
    per identity; None means an even split. ``total`` is their sum. ``usage`` (QUANTITY) is what the weights measure;
    None if nothing is measured.
    """

    identity_index: pa.Array
    weights: pa.Array | None = None
    total: int = 0
    usage: pa.Array | None = None

    @classmethod
    def weighted(cls, identity_index: pa.Array, weights: pa.Array, usage: pa.Array | None = None) -> TargetGroup:
        """Return a group whose members take shares by weight."""
        total = int(pc.sum(weights.cast(WIDE_INTEGER)).as_py())
        return cls(identity_index, weights, total, usage)


@dataclass(frozen=True, slots=True)
class AllocatedPortion:
    """A portion, the group that shares it, and the reasons that its rows show.

    ``chain_position`` is the position of the method in the portion's chain, from 1.
    """

    cost: PortionCost
    group: TargetGroup
    method: MethodKind
    chain_position: int
    detail: str


class AllocationTargets:
    """All identities that can share a line of a day by one of ``methods``.

    ``usage`` and ``members`` have the schemas of :mod:`chargeback.model.usage`, with their rows in any order.
    """

    def __init__(self, usage: pa.Table, members: pa.Table, methods: Collection[AllocationMethod]) -> None:
        usage, members = usage.combine_chunks(), members.combine_chunks()
        ids = {*usage["subject"].unique().to_pylist(), *members["identity_id"].unique().to_pylist()}
        #: All identity ids of the day, ascending.
        self.identity_ids: list[str] = sorted({*ids, inventory.UNALLOCATED})
        resource_ids = {*usage["resource_id"].unique().to_pylist(), *members["resource_id"].unique().to_pylist()}
        self._resource_ids: list[str] = sorted(resource_ids)
        self._groups: dict[tuple[AllocationMethod, str], TargetGroup] = {}
        self._measured: dict[AllocationMethod, frozenset[str]] = {}
        self.unallocated_index = IdentityIndex(self.identity_ids.index(inventory.UNALLOCATED))
        self._groups[UNALLOCATED, EVERYTHING] = TargetGroup(pa.array([self.unallocated_index], pa.int32()))
        used = self._group_keys(usage, "subject").append_column("value", usage["value"])
        # UNALLOCATED is a member of no resource: it never takes part in an even split.
        real = members.filter(pc.not_equal(members["identity_id"], pa.scalar(inventory.UNALLOCATED, pa.string())))
        member_keys, relations = self._group_keys(real, "identity_id"), real["relation"]
        for method in methods:
            if method.kind is MethodKind.USAGE:
                self._add_measured(method, used.filter(_is_in(usage["measure"], method.arguments)))
            elif relation := RELATIONS.get(method):
                self._add_members(method, member_keys.filter(pc.equal(relations, pa.scalar(relation, pa.string()))))

    def find(self, method: AllocationMethod, resource_id: str) -> TargetGroup | None:
        """Return the group that shares a line of ``resource_id`` by ``method``, or None if there is no identity."""
        return self._groups.get((method, EVERYTHING if method in TENANT_WIDE else resource_id))

    def allocate(self, cost: PortionCost, *, metrics_available: bool) -> AllocatedPortion:
        """Take the first method of the portion's chain that has identities; ``unallocated``, the last one, always
        has."""
        methods = cost.portion.methods
        found = ((n, method, self.find(method, cost.resource_id)) for n, method in enumerate(methods, start=1))
        position, method, group = next((n, method, group) for n, method, group in found if group is not None)
        if cost.policy is UNKNOWN:
            detail = chargeback_model.UNKNOWN_PRODUCT_TYPE
        elif position == 1 or method.kind is MethodKind.UNALLOCATED:
            detail = OUTCOMES[method.kind].detail
        else:
            detail = self.failure_detail(methods[0], cost.resource_id, metrics_available=metrics_available)
        return AllocatedPortion(cost, group, method.kind, position, detail)

    def add_charged(self, charged: pa.Table) -> None:
        """Set the weights of the proportional method to the charges of the other lines by identity: columns
        ``identity_index``, ascending, and ``units``.

        Identities with a credit, and UNALLOCATED, do not take part.
        """
        is_real = pc.not_equal(charged["identity_index"], pa.scalar(self.unallocated_index, pa.int32()))
        is_positive = pc.greater(charged["units"], pa.scalar(Decimal(0), INTEGER))
        weighing = charged.filter(pc.and_(is_real, is_positive))
        if weighing.num_rows:
            columns = (column.combine_chunks() for column in weighing.columns)
            self._groups[PROPORTIONAL, EVERYTHING] = TargetGroup.weighted(*columns)

    def failure_detail(self, method: AllocationMethod, resource_id: str, *, metrics_available: bool) -> str:
        """Return the reason why ``method``, the first of a chain, has no identities for a line of ``resource_id``."""
        if method.kind is MethodKind.USAGE:
            if not metrics_available:
                return chargeback_model.METRICS_UNAVAILABLE
            if resource_id in self._measured[method]:
                return chargeback_model.NO_USAGE_FOR_ACTIVE_IDENTITIES
            return chargeback_model.NO_METRICS_LOCATED
        if RELATIONS.get(method) in {OWNER, OWNERS}:
            return chargeback_model.NO_OWNER_LOCATED
        if RELATIONS.get(method) == PERIOD:
            return chargeback_model.NO_IDENTITIES_LOCATED
        return chargeback_model.NO_ACTIVE_IDENTITIES_LOCATED

    def _group_keys(self, table: pa.Table, identity_column: str) -> pa.Table:
        """Return ``group_key`` per row: the resource's position × the number of identities + the identity's index."""
        resources = pa.array(self._resource_ids, pa.string())
        resource_index = pc.index_in(table["resource_id"], value_set=resources).cast(pa.int64())
        identities = pa.array(self.identity_ids, pa.string())
        identity_index = pc.index_in(table[identity_column], value_set=identities).cast(pa.int64())
        group_key = pc.add(pc.multiply(resource_index, int64(len(self.identity_ids))), identity_index)
        return pa.table({"group_key": group_key})

    def _add_measured(self, method: AllocationMethod, rows: pa.Table) -> None:
        sums = rows.group_by("group_key", use_threads=False).aggregate([("value", "sum")])
        summed = sums.sort_by("group_key").combine_chunks()
        resource_index = pc.divide(summed["group_key"], int64(len(self.identity_ids))).unique().to_pylist()
        self._measured[method] = frozenset(self._resource_ids[index] for index in resource_index)
        above_zero = summed.filter(pc.greater(summed["value_sum"], pa.scalar(Decimal(0), QUANTITY))).combine_chunks()
        usage = above_zero["value_sum"].cast(QUANTITY).combine_chunks()
        weights = reinterpret(usage, INTEGER)
        for resource_id, start, count, identity_index in self._runs_by_resource(above_zero["group_key"]):
            group = TargetGroup.weighted(identity_index, weights.slice(start, count), usage.slice(start, count))
            self._groups[method, resource_id] = group

    def _add_members(self, method: AllocationMethod, rows: pa.Table) -> None:
        distinct = rows.group_by("group_key", use_threads=False).aggregate([]).sort_by("group_key")
        for resource_id, _, _, identity_index in self._runs_by_resource(distinct["group_key"]):
            self._groups[method, resource_id] = TargetGroup(identity_index)

    def _runs_by_resource(self, group_keys: pa.ChunkedArray) -> Iterable[tuple[str, int, int, pa.Array]]:
        """Yield (resource id, first row, number of rows, identity indexes) per resource of sorted group keys."""
        identities = int64(len(self.identity_ids))
        resource_index = pc.divide(group_keys, identities)
        identity_index = pc.subtract(group_keys, pc.multiply(resource_index, identities))
        identity_index = identity_index.cast(pa.int32()).combine_chunks()
        runs = resource_index.value_counts()
        start = 0
        for index, count in zip(runs.field("values").to_pylist(), runs.field("counts").to_pylist(), strict=True):
            yield self._resource_ids[index], start, count, identity_index.slice(start, count)
            start += count


def _is_in(column: pa.ChunkedArray, values: Sequence[str]) -> Any:
    return pc.is_in(column, value_set=pa.array(values, pa.string()))
