"""The explanation of one amount: a line is calculated once more, and every intermediate result is kept.

It uses the functions that :mod:`~chargeback.allocation.day` uses, for one line instead of a day: the portions and the
targets of each method; of the exact split it makes the share of one identity. It is a pure function of the day's
evidence and policies. One topic's part of a line is explained in the same way: topics take the place of identities, as
in :mod:`~chargeback.allocation.topics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import integers_of
from chargeback.allocation.day import Allocation, Evidence
from chargeback.allocation.methods import EVEN_ACTIVE, PROPORTIONAL, RELATIONS, AllocationMethod, MethodKind
from chargeback.allocation.policies import UNKNOWN, Policy, PolicyCatalogue, Portion
from chargeback.allocation.targets import (
    AllocationTargets,
    PortionCost,
    TargetGroup,
    billable_lines,
    portion_costs,
)
from chargeback.allocation.topics import MARK, day_of_topics, topic_policy
from chargeback.model import chargeback as chargeback_model
from chargeback.model import inventory
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import from_units
from chargeback.model.topics import UNATTRIBUTED, TopicPlan
from chargeback.model.usage import ACTIVE, EVERYTHING, OWNER, OWNERS, PERIOD, USAGE

#: The id of several participants together.
OTHERS: Final = ""

#: Why a day was attributed to no topic, in the place of the reasons of its methods.
FAILED: Final = "the metrics of the topics could not be fetched"
SKIPPED: Final = "lines without measurements of topics are left out, as `missing_metrics_behavior: skip` says"


@dataclass(frozen=True, slots=True)
class MethodAttempt:
    """One method of a portion's chain: its position from 1, how many identities it finds (None: not shown), and why it
    did not apply."""

    position: int
    method: AllocationMethod
    candidates: int | None
    why_not: str | None

    @property
    def applied(self) -> bool:
        """Return whether the portion was split by this method."""
        return self.why_not is None


class Participant(NamedTuple):
    """An identity that shares the portion: its part of the evidence (None if all parts are equal), and its ``weight``
    of the ``whole``; or, with the id :data:`OTHERS`, others together."""

    identity_id: str
    value: Decimal | None
    weight: int
    whole: int

    @property
    def ratio(self) -> Fraction:
        """Return its part of the portion; thousands share a portion, and few are shown."""
        return Fraction(self.weight, self.whole)


@dataclass(frozen=True, slots=True)
class UsageSplit:
    """What decided a portion.

    Attributes:
        measure: what was measured, such as ``bytes_in + bytes_out``; None for an even split.
        total: the sum of all values; None for an even split.
        participants: all that share the portion, the largest first, equal ones by id.
        members: how many identities were active on the resource of the line; None: not shown.
        metrics_available: whether the day was calculated with metrics.
    """

    measure: str | None
    total: Decimal | None
    participants: tuple[Participant, ...]
    members: int | None
    metrics_available: bool

    def participant(self, identity_id: str) -> Participant | None:
        """Return the participant of an id, or None if it does not share the portion."""
        return next((each for each in self.participants if each.identity_id == identity_id), None)


@dataclass(frozen=True, slots=True)
class ShareArithmetic:
    """How an amount follows from the portion: all in units of 10⁻¹², of the absolute amount.

    Attributes:
        exact: the exact share.
        units_floor: the share rounded down.
        spare_units: how many units remain when all shares are rounded down; each goes to one identity. None: not shown.
        remainder_rank: the place of the identity among the largest remainders, from 1; equal ones by id. None: not
            shown.
        extra_unit: whether the identity got one of the spare units.
        amount: the amount with its sign.
    """

    exact: Fraction
    units_floor: int
    spare_units: int | None
    remainder_rank: int | None
    extra_unit: bool
    amount: Decimal


@dataclass(frozen=True, slots=True)
class PortionExplanation:
    """One portion of a line, as it concerns one identity.

    Attributes:
        number: counts the portions of the policy from 1.
        share: the portion's share of the cost.
        amount: its cost, exactly.
        methods: all methods of the chain, in order; empty if the portion costs nothing.
        usage_split: what decided it; None if the portion costs nothing.
        arithmetic: None if the identity does not share the portion.
        why_nothing: why the identity gets nothing; None if it gets something.
    """

    number: int
    share: Decimal
    amount: Decimal
    methods: tuple[MethodAttempt, ...] = ()
    usage_split: UsageSplit | None = None
    arithmetic: ShareArithmetic | None = None
    why_nothing: str | None = None

    @property
    def applied(self) -> MethodAttempt | None:
        """Return the method by which the portion was split."""
        return next((each for each in self.methods if each.applied), None)


def explain_line(
    evidence: Evidence,
    policies: Mapping[str, Policy],
    line_id: str,
    identity_id: str,
    portion: int | None = None,
    resource_name: str | None = None,
) -> PortionExplanation:
    """Return how one portion of a line was split, as it concerns one identity.

    ``policies`` maps the product types of the bill to their policies; types without one are unknown. The default
    ``portion`` is the one that charges the identity, else the first one. Reasons name the resource of the line by its
    ``resource_name``, or by its id.

    Raises:
        KeyError: the bill has no such line.
        ValueError: the policy has no such portion, or several charge the identity and none is named.
        AllocationError: the amounts of the day do not fit 38 digits.
    """
    line = evidence.billing.filter(pc.equal(evidence.billing["line_id"], pa.scalar(line_id, pa.string())))
    if line.num_rows == 0:
        raise KeyError(line_id)
    policy = policies.get(line["product_type"][0].as_py(), UNKNOWN)
    if portion is not None and not 1 <= portion <= len(policy.portions):
        raise ValueError(f"the policy has no portion {portion}")
    split = _LineSplit(evidence, policies, line, policy, resource_name)
    if portion is None:
        mine = [number for number in sorted(split.costs) if split.gets(number, identity_id)]
        if len(mine) > 1:
            raise ValueError(f"the identity has portions {', '.join(map(str, mine))}: name one of them")
        portion = next(iter(mine or sorted(split.costs)), 1)
    return split.explain(portion, identity_id)


class _LineSplit:
    """One line, with the targets of all methods of its policy."""

    def __init__(
        self,
        evidence: Evidence,
        policies: Mapping[str, Policy],
        line: pa.Table,
        policy: Policy,
        resource_name: str | None,
    ) -> None:
        self._policy = policy
        self._resource_id: str = line["resource_id"][0].as_py()
        self._resource_name = resource_name or self._resource_id
        self._metrics_available = evidence.metrics_available
        self._usage = evidence.usage.filter(_is(evidence.usage, self._resource_id))
        self._members = evidence.members.filter(_is(evidence.members, self._resource_id, EVERYTHING))
        found = portion_costs(billable_lines(line), {line["product_type"][0].as_py(): policy})
        self.costs: dict[int, PortionCost] = {cost.number: cost for cost in found}
        if policy.is_proportional:
            self._targets = _targets_of_day(evidence, policies, policy)
        else:
            methods = {method for portion in policy.portions for method in portion.methods}
            self._targets = AllocationTargets(self._usage, self._members, methods)

    def gets(self, number: int, identity_id: str) -> bool:
        """Return whether an identity gets something of a portion."""
        arithmetic = self._arithmetic(self.costs[number], self._group(number), identity_id)
        return arithmetic is not None and arithmetic.amount != 0

    def explain(self, number: int, identity_id: str) -> PortionExplanation:
        """Return the explanation of one portion."""
        portion: Portion = self._policy.portions[number - 1]
        cost = self.costs.get(number)
        if cost is None:
            nothing = "the line costs nothing" if not self.costs else f"portion {number} of the line costs nothing"
            return PortionExplanation(number, portion.share, from_units(0), why_nothing=nothing)
        group = self._group(number)
        arithmetic = self._arithmetic(cost, group, identity_id)
        methods = self._methods(cost)
        applied = next(each for each in methods if each.applied)
        why_nothing = None
        if arithmetic is None:
            why_nothing = self._why_no_contender(applied.method, identity_id)
        elif arithmetic.amount == 0:
            why_nothing = "its exact share is less than 10⁻¹², and others have larger remainders"
        return PortionExplanation(
            number,
            portion.share,
            from_units(cost.units),
            methods,
            self._usage_split(applied.method, group),
            arithmetic,
            why_nothing,
        )

    def _group(self, number: int) -> TargetGroup:
        return self._targets.allocate(self.costs[number], metrics_available=self._metrics_available).group

    def _methods(self, cost: PortionCost) -> tuple[MethodAttempt, ...]:
        """Return all methods of a portion's chain; those after the one that applied were not needed."""
        position = self._targets.allocate(cost, metrics_available=self._metrics_available).chain_position
        tried = []
        for number, method in enumerate(cost.portion.methods, start=1):
            group = self._targets.find(method, self._resource_id)
            why_not = None if number == position else f"not needed: method {position} applied"
            if number < position:
                why_not = self._why_not(method)
            tried.append(MethodAttempt(number, method, 0 if group is None else len(group.identity_index), why_not))
        return tuple(tried)

    def _why_not(self, method: AllocationMethod) -> str:
        """Return why a method found no identity, and so what it would have needed."""
        if method == PROPORTIONAL:
            return "no identity was charged for any line that is split by another method"
        resource, measured = self._resource_name, method.measured
        reason = self._targets.failure_detail(method, self._resource_id, metrics_available=self._metrics_available)
        if method.kind is MethodKind.USAGE and reason == chargeback_model.METRICS_UNAVAILABLE:
            return f"the metrics source did not answer, so no {measured} were measured"
        if reason == chargeback_model.NO_USAGE_FOR_ACTIVE_IDENTITIES:
            return f"{measured} were measured on {resource}, but they were all zero"
        if reason == chargeback_model.NO_METRICS_LOCATED:
            return f"no {measured} were measured on {resource} on this day"
        relation = RELATIONS.get(method)
        if relation == OWNER:
            return f"the inventory has no owner of {resource} on this day"
        if relation == OWNERS:
            return f"the inventory has no owner of {resource} or of anything in it on this day"
        if relation == PERIOD:
            return "no identity was active on any resource on this day"
        return f"no identity was active on {resource} on this day"

    def _usage_split(self, method: AllocationMethod, group: TargetGroup) -> UsageSplit:
        ids, weights = self._ids(group), _weights(group)
        values: list[Decimal | None] = [None] * len(ids)
        total = None
        if method.kind is MethodKind.USAGE and group.usage is not None:
            values = group.usage.to_pylist()
            total = from_units(group.total, group.usage.type.scale)
        elif method.kind is MethodKind.PROPORTIONAL:
            values, total = [from_units(weight) for weight in weights], from_units(group.total)
        # A reversed sort keeps the order of equals.
        order = sorted(range(len(ids)), key=weights.__getitem__, reverse=True)
        whole = sum(weights)
        return UsageSplit(
            " + ".join(method.arguments) if method.kind is MethodKind.USAGE else None,
            total,
            tuple(Participant(ids[index], values[index], weights[index], whole) for index in order),
            len(self._related(ACTIVE)),
            self._metrics_available,
        )

    def _arithmetic(self, cost: PortionCost, group: TargetGroup, identity_id: str) -> ShareArithmetic | None:
        ids, weights = self._ids(group), _weights(group)
        if identity_id not in ids:
            return None
        index, units, whole = ids.index(identity_id), abs(cost.units), sum(weights)
        remainders = [units * weight % whole for weight in weights]
        floor, remainder = divmod(units * weights[index], whole)
        spare = sum(remainders) // whole
        larger = sum([other > remainder for other in remainders])
        rank = larger + remainders[:index].count(remainder) + 1
        share = floor + (rank <= spare)
        return ShareArithmetic(
            Fraction(units * weights[index], whole),
            floor,
            spare,
            rank,
            share > floor,
            from_units(share if cost.units >= 0 else -share),
        )

    def _ids(self, group: TargetGroup) -> list[str]:
        return [self._targets.identity_ids[index] for index in group.identity_index.to_pylist()]

    def _related(self, relation: str, resource_id: str | None = None) -> set[str]:
        """Return the members with a relation to the resource of the line, or to another."""
        rows = self._members.filter(_is(self._members, resource_id or self._resource_id))
        found = rows.filter(pc.equal(rows["relation"], pa.scalar(relation, pa.string())))
        return set(found["identity_id"].to_pylist()) - {inventory.UNALLOCATED}

    def _why_no_contender(self, method: AllocationMethod, identity_id: str) -> str:
        """Return why an identity does not share a portion that was split by ``method``."""
        resource = self._resource_name
        if method.kind is MethodKind.UNALLOCATED:
            return "no method of the policy found anyone to charge, so the cost is UNALLOCATED"
        if method.kind is MethodKind.PROPORTIONAL:
            return "other lines charge it nothing, so there is nothing that this line could follow"
        if method.kind is MethodKind.USAGE:
            usage = self._usage.filter(pc.is_in(self._usage["measure"], value_set=pa.array(method.arguments)))
            if identity_id in usage["subject"].to_pylist():
                return f"its measured {method.measured} on {resource} were zero"
            return f"no {method.measured} of it were measured on {resource}"
        if identity_id == inventory.UNALLOCATED:
            return "there was someone to charge, so nothing is left for UNALLOCATED"
        relation = RELATIONS[method]
        if relation == PERIOD:
            return "it was not active on any resource on this day"
        return f"it did not own {resource}" if relation in {OWNER, OWNERS} else f"it was not active on {resource}"


def _is(table: pa.Table, *resource_ids: str) -> pa.ChunkedArray:
    return pc.is_in(table["resource_id"], value_set=pa.array(resource_ids, pa.string()))


def _weights(group: TargetGroup) -> list[int]:
    return [1] * len(group.identity_index) if group.weights is None else integers_of(group.weights)


def _targets_of_day(evidence: Evidence, policies: Mapping[str, Policy], policy: Policy) -> AllocationTargets:
    """Return the targets of a proportional ``policy``, which splits its lines like the charges of the other lines.

    The shares of these are calculated, but not their rows, which would be nearly all of the work.

    Raises:
        AllocationError: the amounts of the day do not fit 38 digits.
    """
    lines = billable_lines(evidence.billing)
    of_types = PolicyCatalogue(policies, {}).policies_of(lines["product_type"].unique().to_pylist())
    methods = {
        method for each in (policy, *of_types.values()) for portion in each.portions for method in portion.methods
    }
    targets = AllocationTargets(evidence.usage, evidence.members, methods)
    Allocation(evidence, targets).allocate_others(portion_costs(lines, of_types))
    return targets


def explain_topic(
    day: date,
    line: pa.Table,
    evidence: pa.Table | None,
    plan: TopicPlan,
    topic: str,
    cluster_name: str | None = None,
) -> PortionExplanation:
    """Return how a line (one row of schema BILLING) was attributed to topics, as it concerns one of them.

    Reasons call the cluster of the line by its ``cluster_name``, or by its id.

    ``evidence`` has the measurements of topics, see :meth:`TopicAttributor.attribute`; None for a day whose metrics
    could not be fetched, so that every line was attributed to UNATTRIBUTED. The participants are topics.

    Raises:
        KeyError: the plan does not attribute lines of this type.
    """
    product_type, line_id = line["product_type"][0].as_py(), line["line_id"][0].as_py()
    method = plan.method_of(product_type)
    if method is None:
        raise KeyError(product_type)
    policy: Policy = topic_policy(method, plan)
    marked = day_of_topics(day, line, USAGE.empty_table() if evidence is None else evidence, plan)
    identity = UNALLOCATED if topic == UNATTRIBUTED else f"{MARK}{topic}"
    found = explain_line(marked, {product_type: policy}, line_id, identity, 1, cluster_name)
    applied = found.applied
    if applied is None or found.usage_split is None:
        return found
    cluster = cluster_name or line["resource_id"][0].as_py()
    methods = tuple(_told(each, cluster, is_failed=evidence is None) for each in found.methods)
    if evidence is not None and applied.method.kind is MethodKind.UNALLOCATED and not plan.spreads_missing:
        return replace(found, methods=methods, usage_split=None, arithmetic=None, why_nothing=SKIPPED)
    why_nothing = found.why_nothing
    if found.arithmetic is None:
        why_nothing = _why_not_among(topic, applied, plan)
    return replace(found, methods=methods, usage_split=_of_topics(found.usage_split), why_nothing=why_nothing)


def _told(tried: MethodAttempt, cluster: str, *, is_failed: bool) -> MethodAttempt:
    """Return a method whose reason speaks of topics."""
    if tried.why_not is None or tried.why_not.startswith("not needed"):
        return tried
    if is_failed:
        return replace(tried, why_not=FAILED)
    if tried.method == EVEN_ACTIVE:
        return replace(tried, why_not=f"no topic of {cluster} is known on this day")
    return tried


def _why_not_among(topic: str, applied: MethodAttempt, plan: TopicPlan) -> str:
    """Return why a topic does not share a line."""
    if topic == UNATTRIBUTED:
        return f"there were topics to attribute the line to, so nothing is left for {UNATTRIBUTED}"
    pattern = next((each for each in plan.exclude_patterns if fnmatchcase(topic, each)), None)
    if pattern is not None:
        return f"topics of the pattern {pattern} are excluded"
    if applied.method.kind is MethodKind.UNALLOCATED:
        return f"the line could be attributed to no topic, so it is {UNATTRIBUTED}"
    if applied.method.kind is MethodKind.USAGE:
        return f"no {applied.method.measured} of it were measured on this day"
    return "it is not known to have existed on this day"


def _of_topics(usage_split: UsageSplit) -> UsageSplit:
    """Return what decided the line, with the names of topics."""
    named = tuple(
        each._replace(identity_id=UNATTRIBUTED if each.identity_id == UNALLOCATED else each.identity_id[len(MARK) :])
        for each in usage_split.participants
    )
    return replace(usage_split, participants=named)
